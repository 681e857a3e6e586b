"""One table of cases for all who tell which value of a trial counts: the controller, the status, and the last step."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException

from controllers.core.model import TrialId
from controllers.tracking.client import CarefulClient
from controllers.tracking.mlflow_source import MlflowSource, Scope
from hera_specon.answer import program
from hera_specon.cluster.sweep_state import tracked_sweeps
from mlflow_hooks import contract
from tests.hera_specon.answer.told import EndedSweep
from tests.mlflow_hooks.hook_jobs import Server


@dataclass(frozen=True)
class Made:
    """A run: steps and values of the loss in the order of time; ``attempt`` is empty where no script made it.

    ``logged_s`` is how many seconds after the first run was made its points were logged.
    """

    points: Sequence[tuple[int, float]] = ()
    attempt: str = ""
    marks: tuple[str, ...] = ()
    nested: bool = False
    elsewhere: bool = False
    logged_s: float = 0.0


HOOKS = (contract.METRIC_OBJECTIVE_FIRST,)
FIRST_PHASE = [(step, 0.1) for step in range(5)]
CASES: dict[str, tuple[list[Made], tuple[float, int]]] = {
    "steps that grow": ([Made([(0, 0.9), (1, 0.8)])], (0.8, 1)),
    "an empty run before that with data": ([Made(), Made([(7, 0.5)])], (0.5, 7)),
    "an empty run after that with data": ([Made([(7, 0.5)]), Made()], (0.5, 7)),
    "a run of the controller twice": ([Made([(7, 0.5)]), Made([(8, 0.4)])], (0.5, 7)),
    "a script that began again": ([Made([(40, 0.9)], "one"), Made([(3, 0.2)], "two")], (0.2, 3)),
    "a script that went on in a run of each attempt": ([Made([(40, 0.9)], "one"), Made([(41, 0.2)], "two")], (0.2, 41)),
    "a script that went on in its first run beside another": (
        [Made([(0, 0.9), (41, 0.2)], "one", logged_s=9), Made((), "two")],
        (0.2, 41),
    ),
    "a script that had nothing left to train": ([Made([(40, 0.9)], "one"), Made((), "two")], (0.9, 40)),
    "a script with an empty run of the controller": ([Made(), Made([(3, 0.2)], "one")], (0.2, 3)),
    "a script with nested runs": ([Made([(3, 0.2)], "one"), Made([(5, 0.1)], "one", nested=True)], (0.2, 3)),
    "a script with an experiment of its own": ([Made([(3, 0.2)], "one", elsewhere=True)], (0.2, 3)),
    "a second phase of a script": ([Made([*FIRST_PHASE, (0, 0.9), (1, 0.7)], "one")], (0.7, 1)),
    "a second phase in a run of the controller": ([Made([*FIRST_PHASE, (0, 0.9), (1, 0.7)])], (0.7, 1)),
    "a second phase that hooks marked": (
        [Made([*FIRST_PHASE, (0, 0.9)], marks=(*HOOKS, contract.METRIC_STEPS_BACK))],
        (0.9, 0),
    ),
    "hooks without a mark": ([Made([*FIRST_PHASE, (0, 0.9)], marks=HOOKS)], (0.1, 4)),
    "steps that went back and on": ([Made([(0, 0.9), (3, 0.5), (1, 0.6), (9, 0.4)])], (0.4, 9)),
    "a value at the same step again": ([Made([(5, 0.1), (5, 0.6)])], (0.6, 5)),
    "steps that go down": ([Made([(2, 0.1), (1, 0.2), (0, 0.3)])], (0.3, 0)),
}


@pytest.fixture
def sweep(mlflow_server: Server, tmp_path: Path) -> EndedSweep:
    return EndedSweep(mlflow_server.uri, tmp_path)


def make(sweep: EndedSweep, number: int, runs: Sequence[Made]) -> None:
    elsewhere, before = "", ""
    for place, run in enumerate(runs):
        tags = {contract.TAG_SWEEP_ID: sweep.id, contract.TAG_TRIAL_ID: f"{sweep.id}.t{number:03}"}
        tags |= {contract.TAG_ATTEMPT: run.attempt} if run.attempt else {}
        tags |= {"mlflow.parentRunId": before} if run.nested else {}
        if run.elsewhere:
            elsewhere = sweep.client.create_experiment(f"{sweep.name} of {number}")
        where = elsewhere if run.elsewhere else sweep.experiment
        before = sweep.client.create_run(where, start_time=1000 * (1 + place), tags=tags).info.run_id
        logged = round(1000 * (1 + run.logged_s))
        points = [Metric("loss", value, logged + at, step) for at, (step, value) in enumerate(run.points)]
        sweep.client.log_batch(before, metrics=[*points, *(Metric(mark, 1.0, 1, 0) for mark in run.marks)])
        sweep.client.log_param(before, "lr", 0.5)
        sweep.client.set_terminated(before, "FINISHED")


def test_the_controller_the_status_and_the_last_step_count_the_same_value(sweep: EndedSweep) -> None:
    trials = {name: TrialId(f"{sweep.id}.t{number:03}") for number, name in enumerate(CASES)}
    for number, (runs, _) in enumerate(CASES.values()):
        make(sweep, number, runs)
    expected = {name: counts for name, (_, counts) in CASES.items()}
    client, objectives = CarefulClient(sweep.uri), dict.fromkeys(trials.values(), "loss")

    everywhere = [one.experiment_id for one in client.search_experiments() if one.name.startswith(sweep.name)]
    source = MlflowSource(client, lambda: Scope(everywhere, sweep.id), lambda: objectives, float)
    samples = source.poll(whole=True)
    assert {name: (samples[trial].value, samples[trial].step) for name, trial in trials.items()} == expected
    assert {name for name, trial in trials.items() if "went back" in samples[trial].remark} == {
        name for name in CASES if name.startswith(("a second phase", "steps that go down"))
    }
    assert source.poll(whole=True) == samples

    shown = tracked_sweeps(client, {sweep.id: sweep.name}, dict.fromkeys(trials.values(), ("loss",))).trials
    points = {name: shown[trial].metrics["loss"] for name, trial in trials.items()}
    assert {name: (point.value, point.step) for name, point in points.items()} == expected
    assert {trial: run.remark for trial, run in shown.items()} == {trial: s.remark for trial, s in samples.items()}

    told = sweep.tell(SPECON_TRIALS=str(len(CASES)))
    values = {trial["trial"]: trial["value"] for trial in told.json("trials")}
    assert {name: values[trial.rpartition(".")[2]] for name, trial in trials.items()} == {
        name: value for name, (value, _) in expected.items()
    }
    assert told.said.count("went back") == sum("went back" in sample.remark for sample in samples.values())


def test_an_mlflow_that_does_not_tell_the_points_is_asked_again(
    sweep: EndedSweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(sweep, 0, [Made([*FIRST_PHASE, (0, 0.9)])])
    client, objectives = CarefulClient(sweep.uri), {TrialId(f"{sweep.id}.t000"): "loss"}
    source = MlflowSource(client, lambda: Scope([sweep.experiment], sweep.id), lambda: objectives, float)

    def refuse(*_: object) -> None:
        message = "no such endpoint"
        raise MlflowException(message)

    with monkeypatch.context() as without:
        without.setattr("controllers.tracking.newest_by_time.history_answer", refuse)
        (shown,) = source.poll(whole=True).values()
    assert (shown.value, "not known" in shown.remark, source.away) == (0.1, True, False)
    (known,) = source.poll(whole=True).values()
    assert (known.value, "went back" in known.remark) == (0.9, True)


def test_points_on_several_pages_are_all_read_and_too_many_are_said(
    sweep: EndedSweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(sweep, 0, [Made([*FIRST_PHASE, (0, 0.9), (1, 0.7)])])
    client, objectives = CarefulClient(sweep.uri), {TrialId(f"{sweep.id}.t000"): "loss"}

    def look() -> tuple[float, str]:
        source = MlflowSource(client, lambda: Scope([sweep.experiment], sweep.id), lambda: objectives, float)
        (sample,) = source.poll().values()
        return sample.value, sample.remark

    for name, told in sweep.env.items():
        monkeypatch.setenv(name, told)
    monkeypatch.setattr("controllers.tracking.newest_by_time._PAGE", 2)
    monkeypatch.setattr(program, "POINTS", 2)
    (run,) = client.search_runs([sweep.experiment])
    assert look()[0] == 0.7
    last = program.last_point(run.info.run_id, "loss")
    assert last is not None
    assert last["value"] == 0.7
    monkeypatch.setattr("controllers.tracking.newest_by_time._MOST_PAGES", 3)
    monkeypatch.setattr(program, "MOST_PAGES", 3)
    value, remark = look()
    assert value == 0.1
    assert "more points in MLflow than are read" in remark
    assert program.last_point(run.info.run_id, "loss") is None
