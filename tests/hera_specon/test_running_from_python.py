"""Sweeps from Python: what was run or loaded answers with its best trial, its trials as a table, and its page."""

from pathlib import Path
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core.results import RunResult, TrialResult
from controllers.local_run.order import LocalSettings
from controllers.local_run.run import LocalRun
from hera_specon import Ahead, Sweep, choice, load, minimize, run, running
from hera_specon.cli.backend import Backend, real_backend
from hera_specon.running import NoModelError, SweepOutcome
from tests.hera_specon.report.example_run import write_example_run


def trial(name: str, value: float, **changes: Any) -> TrialResult:  # noqa: ANN401 - fields of TrialResult
    return TrialResult(name, 0.0, 9.0, "n1", 0, 1, value, params={"lr": value}, sweep="s", objective="loss", **changes)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What the backend was asked for; it runs nothing."""
    found: list[Any] = []

    def run_locally(workflow: Any, _source: Path, policies: Any, settings: LocalSettings, _screen: Any) -> LocalRun:  # noqa: ANN401
        found.extend((workflow, [policy.name for policy in policies], settings))
        return LocalRun(
            tmp_path, tuple(RunResult(p.name, (trial("s.a", 0.5), trial("s.b", 0.1))) for p in policies), "x"
        )

    real = real_backend()
    monkeypatch.setattr(running, "real_backend", lambda: Backend(real.load_workflow, real.parse_policy, run_locally))
    return found


def workflow(**more: Any) -> Workflow:  # noqa: ANN401 - fields of Sweep
    with Workflow(generate_name="s-", entrypoint="s") as w:
        Sweep(
            name="s", image="i", command=["true"], space={"lr": choice(0.1, 0.5)}, search="grid",
            objective=minimize("loss"), **more,
        )  # fmt: skip
    return w


def test_a_run_answers_with_its_best_trial_and_a_table(asked: list[Any]) -> None:
    done = run(workflow(), "default", nodes=2, live=False)

    assert (done.best.id, done.best.params) == ("s.b", {"lr": 0.1})
    assert list(done.trials["parameter.lr"]) == [0.5, 0.1]
    assert list(done.trials["policy"]) == ["default", "default"]
    sent, policies, settings = asked
    assert sent["metadata"]["generateName"] == "s-"
    assert (policies, settings.nodes) == (["default"], 2)


def test_policies_may_be_objects_texts_or_those_that_the_sweep_names(asked: list[Any]) -> None:
    run(workflow(), [Ahead(), "fifo"], live=False)
    run(workflow(policy=Ahead()), live=False)
    assert (asked[1], asked[4]) == (["ahead", "fifo"], ["ahead"])


def test_a_run_on_this_machine_is_loaded_with_its_page(tmp_path: Path) -> None:
    write_example_run(tmp_path)
    loaded = load(state_dir=tmp_path)
    assert [result.policy for result in loaded.results] == ["default", "specon+flowcon"]
    assert loaded.report().read_text().startswith("<!doctype html>")
    assert len(loaded.trials) == 2 * len(loaded.results[0].trials)


def test_without_a_model_or_with_several_sweeps_there_is_no_single_best() -> None:
    with pytest.raises(NoModelError, match="none ended well"):
        _ = SweepOutcome(None, (RunResult("default", (trial("s.a", 0.1, succeeded=False),)),)).best
    other = TrialResult("z.a", 0.0, 1.0, "n1", 0, 1, 0.3, sweep="z")
    with pytest.raises(NoModelError, match="sweeps s, z"):
        _ = SweepOutcome(None, (RunResult("default", (trial("s.a", 0.1), other)),)).best
