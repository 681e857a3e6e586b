"""The last step of a sweep, run as in a pod: a Python without any package, and a real MLflow server."""

import json
import math
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from controllers.core.aims import pareto_front
from hera_specon.answer import program
from mlflow_hooks import bounds, contract
from tests.hera_specon.answer.told import EndedSweep
from tests.mlflow_hooks.hook_jobs import Server

if TYPE_CHECKING:
    from mlflow.entities import LoggedModelOutput


@pytest.fixture
def sweep(mlflow_server: Server, tmp_path: Path) -> EndedSweep:
    return EndedSweep(mlflow_server.uri, tmp_path)


def test_the_best_is_told_by_its_last_value_with_its_parameters_run_and_checkpoints(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.5, 0.4)
    best = sweep.trial(1, 0.9, 0.2)
    sweep.trial(2, 0.1, 0.3)
    told = sweep.tell()
    assert told.json("params") == {"lr": 0.1}
    assert told.outputs["param-lr"] == "0.1"
    assert (told.outputs["value"], told.outputs["trial"], told.outputs["run-id"]) == ("0.2", "t001", best)
    assert told.outputs["checkpoint"] == f"/mnt/specon/{sweep.id}.t001/checkpoints"
    assert [trial["trial"] for trial in told.json("trials")] == ["t001", "t002", "t000"]


def test_the_greatest_value_is_the_best_where_it_is_to_be_great(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.5)
    sweep.trial(1, 0.9)
    assert sweep.tell(SPECON_DIRECTION="maximize").outputs["trial"] == "t001"


def test_trials_that_failed_or_diverged_are_never_the_best_and_one_that_was_stopped_may_be(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.1, status="FAILED")
    sweep.trial(1, 0.2, math.nan)
    sweep.trial(2, -math.inf)
    sweep.trial(3, 0.3, tags={contract.TAG_OUTCOME: "stopped"})
    sweep.trial(4, 0.4)
    sweep.trial(5)
    told = sweep.tell()
    assert told.outputs["trial"] == "t003"
    assert {trial["trial"]: trial["outcome"] for trial in told.json("trials")} == {
        "t000": "failed",
        "t001": "diverged",
        "t002": "diverged",
        "t003": "stopped",
        "t004": "succeeded",
        "t005": "no value",
    }


def test_a_run_that_nobody_ended_is_a_success_only_where_argo_says_that_all_are(
    sweep: EndedSweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "UNENDED_S", 0.0)
    for name, value in {**sweep.env, "SPECON_OUTPUTS": str(sweep.folder / "here")}.items():
        monkeypatch.setenv(name, value)
    sweep.trial(0, 0.1, status="RUNNING")
    sweep.trial(1, 0.2)
    program.main()
    assert (sweep.folder / "here" / "trial").read_text() == "t000"
    monkeypatch.setenv("SPECON_ALL_SUCCEEDED", "false")
    program.main()
    assert (sweep.folder / "here" / "trial").read_text() == "t001"


def test_a_trial_that_breaks_a_constraint_or_has_not_told_is_never_the_best(sweep: EndedSweep) -> None:
    for number, memory in enumerate((600.0, None, 500.0, 512.0)):
        run = sweep.trial(number, 0.1 * (1 + number))
        if memory is not None:
            sweep.client.log_metric(run, "peak memory", memory)
    told = sweep.tell(SPECON_CONSTRAINTS="peak memory <= 512, peak memory >= 505.5")
    assert told.outputs["trial"] == "t003"
    assert [trial["outcome"] for trial in told.json("trials")] == ["succeeded", *["breaks a constraint"] * 3]
    none = sweep.tell(SPECON_CONSTRAINTS="peak memory <= 1")
    assert (none.code, "4 breaks a constraint" in none.error) == (1, True)


def test_the_front_has_those_that_no_other_beats_with_all_their_values(sweep: EndedSweep) -> None:
    runs = {}
    for number, (loss, accuracy) in enumerate(((0.1, 0.5), (0.3, 0.9), (0.2, 0.5), (0.0, math.nan))):
        runs[number] = sweep.trial(number, loss)
        sweep.client.log_metric(runs[number], "val accuracy", accuracy)
    sweep.trial(4, 0.0)
    told = sweep.tell(SPECON_FURTHER="maximize val accuracy")
    front = told.json("front")
    assert [(one["trial"], one["values"]) for one in front] == [
        ("t000", {"loss": 0.1, "val accuracy": 0.5}),
        ("t001", {"loss": 0.3, "val accuracy": 0.9}),
    ]
    assert (front[0]["run_id"], front[0]["params"], front[1]["param-lr"]) == (runs[0], {"lr": 0.0}, "0.1")
    # One value of several decides which is the best; the trial without the other is a model, too.
    assert told.outputs["trial"] in {"t003", "t004"}


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_front_is_the_one_that_the_report_shows(objectives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(objectives)  # noqa: S311 - nothing secret
    drawn = [tuple(float(chance.randint(0, 9)) for _ in range(objectives)) for _ in range(60)]
    monkeypatch.setenv("SPECON_DIRECTION", "minimize")
    monkeypatch.setenv("SPECON_FURTHER", ", ".join(f"minimize m{number}" for number in range(1, objectives)))
    trials = [
        {"trial": place, "value": values[0], "outcome": "succeeded", "values": dict(enumerate(values))}
        for place, values in enumerate(drawn)
    ]
    assert sorted(trial["trial"] for trial in program.front_of(trials)) == pareto_front(drawn)


def test_where_no_trial_has_a_value_the_step_fails_and_says_why(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.1, metric="accuracy")
    sweep.trial(1, status="FAILED")
    told = sweep.tell()
    assert told.code == 1
    assert told.outputs == {}
    assert told.error.strip() == (
        f"no trial of sweep {sweep.id} has a value of loss: 1 failed, 1 no value. They logged accuracy."
    )


def test_the_hyperparameters_are_those_of_the_sweep_whatever_a_run_says(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.1, params={"lr": "$(rm -rf /)"})
    told = sweep.tell(SPECON_POINTS='[["t000", 0.25]]')
    assert told.json("params") == {"lr": 0.25}


@pytest.mark.parametrize("value", ["{{workflow.name}}", "two\nlines", "x" * 501])
def test_a_value_that_no_hyperparameter_can_have_is_refused(sweep: EndedSweep, value: str) -> None:
    sweep.trial(0, 0.1, params={"lr": value})
    told = sweep.tell()
    assert told.code == 1
    assert "MLflow has a value of lr that none can have" in told.error


def test_no_output_holds_what_argo_would_replace_whoever_wrote_it(
    sweep: EndedSweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**sweep.env, "SPECON_TOP": "2", "SPECON_FURTHER": "minimize size"}.items():
        monkeypatch.setenv(name, value)
    best = {"info": {"run_id": "r1", "status": "FINISHED"}, "data": {"metrics": [{"key": "loss", "value": 0.1}]}}
    monkeypatch.setattr(program, "ended_runs", lambda _: {"t000": best})
    monkeypatch.setattr(program, "points", lambda: {"t000": {"lr": 0.1}})
    monkeypatch.setattr(program, "with_newest", lambda _: None)
    monkeypatch.setattr(program, "checkpoints", lambda number, run_id: f"/state/{number}/{run_id}")
    program.main()
    written = program.outputs_of(program.trials_of({"t000": best}))
    assert written.keys() >= {"trials", "run-id", "checkpoint", "top-2", "front", "params", "param-lr"}
    for output in (*written, "model-version", "model-uri"):
        hostile = {**written, output: "{{=workflow.parameters}}"}
        monkeypatch.setattr(program, "outputs_of", lambda _, hostile=hostile: hostile)
        with pytest.raises(program.AnswerError, match=f"output {output} holds what Argo would replace"):
            program.main()


def test_a_run_that_calls_itself_by_a_tag_of_argos_ends_the_step_before_anything_is_handed_on(
    sweep: EndedSweep,
) -> None:
    sweep.trial(0, 0.1)
    sweep.trial(1, 0.2, status="FAILED", params={"lr": "{{workflow.uid}}"})
    told = sweep.tell()
    assert (told.code, told.outputs) == (1, {})
    assert "output trials holds what Argo would replace" in told.error
    assert "{{workflow.uid}}" in told.error


def test_a_sweeps_id_that_holds_a_query_never_gets_to_mlflow(sweep: EndedSweep) -> None:
    told = sweep.tell(SPECON_SWEEP_ID="' OR tags.x != '.search")
    assert (told.code, "a sweep has no such id" in told.error) == (1, True)


def test_what_a_search_chose_comes_from_the_run_with_its_types(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.1, params={"lr": 0.5, "amp": True, "model": "vae", "other": 3})
    told = sweep.tell(SPECON_NAMES='["lr", "amp", "model"]')
    assert told.json("params") == {"lr": 0.5, "amp": True, "model": "vae"}
    assert (told.outputs["param-amp"], told.outputs["param-model"]) == ("true", "vae")


def test_numbers_that_changed_while_a_trial_trained_are_those_that_it_has_at_its_end(sweep: EndedSweep) -> None:
    run = sweep.trial(0, 0.1, params={"lr": 0.5, "batch": 64, "model": "vae", "other": 3})
    for name, values in {"lr": (0.5, 0.6, 0.48), "batch": (64.0, 80.0), "other": (3.0, 4.0)}.items():
        for step, value in enumerate(values):
            sweep.client.log_metric(run, contract.METRIC_PARAM + name, value, step=step)
    told = sweep.tell(SPECON_NAMES='["lr", "batch", "model"]')
    assert told.outputs["params"] == '{"lr": 0.48, "batch": 80, "model": "vae"}'


def test_a_hyperparameter_that_no_run_has_is_told_by_name(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.1)
    told = sweep.tell(SPECON_NAMES='["lr", "depth"]')
    assert (told.code, "has no parameter depth: log it" in told.error) == (1, True)


def test_the_first_few_are_items_to_fan_out_over(sweep: EndedSweep) -> None:
    for number, value in enumerate((0.3, 0.1, 0.2, math.nan)):
        sweep.trial(number, value)
    told = sweep.tell(SPECON_TOP="2 9")
    assert [(item["trial"], item["value"], item["param-lr"]) for item in told.json("top-2")] == [
        ("t001", "0.1", "0.1"),
        ("t002", "0.2", "0.2"),
    ]
    assert len(told.json("top-9")) == 3


def test_of_a_scripts_own_runs_the_newest_attempts_counts_wherever_it_is(sweep: EndedSweep) -> None:
    elsewhere = sweep.client.create_experiment(f"{sweep.name}-of-the-script")
    sweep.trial(0, 0.1, tags={contract.TAG_ATTEMPT: "a"}, experiment=elsewhere)
    newest = sweep.trial(0, 0.5, tags={contract.TAG_ATTEMPT: "b"}, experiment=elsewhere)
    sweep.trial(0, tags={contract.TAG_ATTEMPT: "b", "mlflow.parentRunId": newest}, experiment=elsewhere)
    told = sweep.tell(SPECON_TRIALS="1")
    assert (told.outputs["run-id"], told.outputs["value"]) == (newest, "0.5")


def test_of_runs_that_hooks_began_the_oldest_with_data_counts(sweep: EndedSweep) -> None:
    sweep.trial(0)
    runs = []
    for value in (0.5, 0.1):
        time.sleep(0.05)  # their order is that of their beginnings, in milliseconds
        runs.append(sweep.trial(0, value))
    told = sweep.tell()
    assert (told.outputs["run-id"], told.outputs["value"]) == (runs[0], "0.5")


def test_runs_of_other_sweeps_are_left_alone(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.5)
    sweep.trial(1, 0.1, tags={contract.TAG_SWEEP_ID: f"{sweep.id}2"})
    sweep.trial(1, 0.1, tags={contract.TAG_TRIAL_ID: "another.sweep.t001"})
    assert sweep.tell().outputs["trial"] == "t000"


def test_a_table_too_large_for_a_workflow_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_BYTES", 120)
    rows = [{"trial": f"t{number:03}", "value": number} for number in range(10)]
    kept = program.within_bounds(rows)
    assert json.loads(kept) == rows[:3]
    assert len(kept) <= 120


def test_the_logged_model_of_the_best_becomes_one_version_with_alias_and_lineage(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.5)
    best = sweep.trial(1, 0.1)
    model = sweep.client.create_logged_model(sweep.experiment, name="model", source_run_id=best)
    sweep.client.log_outputs(best, [_output(model.model_id)])
    name = f"digits-{sweep.name}"
    for _ in range(2):
        told = sweep.tell(SPECON_REGISTER=f"{name}@best")
        assert (told.code, told.outputs["model-uri"]) == (0, f"models:/{name}/1"), told.error
    version = sweep.client.get_model_version_by_alias(name, "best")
    assert (version.version, version.run_id, version.source) == ("1", best, f"models:/{model.model_id}")
    assert version.tags == {
        "specon.sweep_id": sweep.id,
        "specon.trial_id": f"{sweep.id}.t001",
        "loss": "0.1",
        "param.lr": "0.1",
    }


def _output(model: str) -> "LoggedModelOutput":
    from mlflow.entities import LoggedModelOutput  # noqa: PLC0415 - only this test needs it

    return LoggedModelOutput(model, step=0)


def test_without_a_logged_model_the_newest_checkpoint_among_the_runs_artifacts_is_the_model(sweep: EndedSweep) -> None:
    best = sweep.trial(0, 0.1)
    for step in (99, 100):
        sweep.client.log_text(best, "weights", f"specon-state/{sweep.id}.t000/step-{step:08}/layers.txt")
    told = sweep.tell(SPECON_REGISTER=f"{sweep.name}@best", SPECON_STATE_STORE="mlflow")
    assert told.code == 0, told.error
    assert told.outputs["checkpoint"] == f"runs:/{best}/specon-state/{sweep.id}.t000"
    version = sweep.client.get_model_version(sweep.name, told.outputs["model-version"])
    assert str(version.source).endswith(f"specon-state/{sweep.id}.t000/step-00000100")


def test_where_there_is_no_model_to_register_it_is_told_what_to_log(sweep: EndedSweep) -> None:
    sweep.trial(0, 0.1)
    told = sweep.tell(SPECON_REGISTER=f"{sweep.name}@best")
    assert told.code == 1
    assert "has no model to register: log one, such as by mlflow.pytorch.log_model" in told.error


def test_a_tracking_server_that_is_none_is_told_without_its_password(sweep: EndedSweep) -> None:
    told = sweep.tell(MLFLOW_TRACKING_URI="postgresql://me:secret@db/mlflow")
    assert told.code == 1
    assert "postgresql://db/mlflow" in told.error
    assert "secret" not in told.error


def test_the_program_names_tags_and_variables_as_the_contract_does() -> None:
    text = Path(str(program.__file__)).read_text()
    named = {contract.TAG_SWEEP_ID, contract.TAG_TRIAL_ID, contract.TAG_ATTEMPT, contract.TAG_OUTCOME}
    named |= {contract.TAG_PARAMS, contract.ENV_SWEEP_ID, contract.ENV_OBJECTIVE, contract.ENV_DIRECTION}
    assert all(name in text for name in named | {contract.ENV_STATE_ROOT, contract.ENV_STATE_STORE})


def test_argo_finds_no_placeholder_in_the_program() -> None:
    text = Path(str(program.__file__)).read_text()
    assert "{{" not in text
    assert "}}" not in text


class Endless:
    """An answer that never ends; a slow one takes its time for each piece."""

    def __init__(self, piece: bytes) -> None:
        self._piece = piece

    def read1(self, _most: int) -> bytes:
        return self._piece


def test_an_answer_without_end_is_read_so_far_and_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_ANSWER", 1000)
    with pytest.raises(ValueError, match="does not end"):
        program.whole(Endless(b"x" * 300), math.inf)
    monkeypatch.setattr(program, "MOST_ANSWER", math.inf)
    with pytest.raises(ValueError, match="does not end"):
        program.whole(Endless(b"x"), time.monotonic() + 0.05)


@pytest.mark.parametrize("kind", [("[", "]"), ('{"a\\"[": ', "}")])
def test_an_answer_is_as_deep_as_anywhere_else(kind: tuple[str, str]) -> None:
    opens, closes = kind
    assert program.MOST_DEPTH == bounds.MOST_DEPTH
    text = opens * bounds.MOST_DEPTH + "1" + closes * bounds.MOST_DEPTH
    assert program.decoded(text.encode()) == json.loads(text)
    for depth in (bounds.MOST_DEPTH + 1, 1_500, 200_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            program.decoded((opens * depth + "1" + closes * depth).encode())
    assert program.parsed("[" * 200_000) == "[" * 200_000
