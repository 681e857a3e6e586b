"""Trials that have not begun wait once a first one has ended well without what its sweep goes by."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from controllers.core import labels
from controllers.core.model import Phase, Sample, TrialId
from controllers.core.ports import ComingTrial
from controllers.local_run.objective_check import ObjectiveCheck, objective_is_missing
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract


def job(name: str, phase: Phase, attempt: int = 1, *, sweep: str = "s", further: str = "") -> LocalJob:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    notes |= {labels.ANNOTATION_FURTHER_OBJECTIVES: further} if further else {}
    env, marks = {contract.ENV_TRIAL_ID: f"uid.{sweep}.{name}"}, {labels.LABEL_SWEEP: sweep}
    step = PodStep(f"{sweep}.{name}", "t", ("x",), env=env, labels=marks, annotations=notes)
    return replace(LocalJob(step, 0.0, 1.0), phase=phase, attempt=attempt)


WAITS = job("z", Phase.PENDING, 0)


@dataclass
class Around:
    """A world, what its trials have logged as far as this machine knows, and what MLflow has."""

    all: Sequence[LocalJob]
    known: dict[str, Sample] = field(default_factory=dict)
    tracked: dict[str, Collection[str]] = field(default_factory=dict)
    away: bool = False
    ends: int = 0
    answered: threading.Event = field(default_factory=threading.Event)

    def jobs(self) -> Sequence[LocalJob]:
        return self.all

    def to_come(self) -> Sequence[ComingTrial]:
        return ()

    def short(self, trial: str) -> str:
        return trial.removeprefix("uid.")

    def samples(self) -> Mapping[TrialId, Sample]:
        return {TrialId(name): sample for name, sample in self.known.items()}

    def logged(self, jobs: Sequence[LocalJob]) -> Mapping[str, Collection[str]]:
        if self.away:
            message = "MLflow is away"
            raise OSError(message)
        return {one.trial: self.tracked.get(one.trial, ()) for one in jobs}


def checked(folder: Path, around: Around, *, holding: bool = True) -> ObjectiveCheck:
    return ObjectiveCheck(folder, around, around.samples, around.logged, holding=holding)


def news(check: ObjectiveCheck) -> list[str]:
    """Return all that is told until MLflow has answered."""
    told = list(check.news())
    while check._thread is not None:
        check._thread.join()
        told += check.news()
    return told


def sample(*also: tuple[str, float]) -> Sample:
    return Sample(0.5, 0, 0.0, also=also)


def test_others_wait_and_the_name_that_was_meant_is_told_once(tmp_path: Path) -> None:
    around = Around([job("a", Phase.SUCCEEDED), WAITS], tracked={"uid.s.a": {"train_loss", "specon.cpu"}})
    check = checked(tmp_path, around)
    assert check.holds(WAITS), "also before MLflow has answered"
    if check._thread is not None:
        check._thread.join()
    assert check.holds(WAITS), "and once it has"
    told = news(check)
    assert told[0] == (
        "Warning: s.a ended well, but never logged its objective 'loss': it logged train_loss "
        "(did you mean 'train_loss'?)"
    )
    assert news(check) == []
    assert check.holds(WAITS)
    assert "1 other trial did not begin" in (check.why_over() or "")
    assert objective_is_missing(tmp_path)


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.SUSPENDED, Phase.STOPPED, Phase.RUNNING, Phase.MOVING])
def test_a_trial_that_did_not_end_well_says_nothing_of_its_objective(tmp_path: Path, phase: Phase) -> None:
    check = checked(tmp_path, Around([job("a", phase), WAITS]))
    assert not check.holds(WAITS)
    assert (news(check), check.why_over()) == ([], None)


@pytest.mark.parametrize("where", ["here", "in MLflow", "by another trial that runs"])
def test_an_objective_that_shows_anywhere_holds_nobody_back(tmp_path: Path, where: str) -> None:
    around = Around([job("a", Phase.SUCCEEDED), job("b", Phase.RUNNING), WAITS])
    if where == "in MLflow":
        around.tracked = {"uid.s.a": {"loss"}}
    else:
        around.known = {"uid.s.a" if where == "here" else "uid.s.b": sample()}
    check = checked(tmp_path, around)
    assert news(check) == []
    assert not check.holds(WAITS)


def test_an_objective_that_shows_later_lets_the_others_begin(tmp_path: Path) -> None:
    around = Around([job("a", Phase.SUCCEEDED), job("b", Phase.RUNNING), WAITS])
    check = checked(tmp_path, around)
    assert len(news(check)) == 2
    assert check.why_over() is None, "one still runs"
    around.known = {"uid.s.b": sample()}
    assert news(check) == ["the objective of s shows after all: its trials go on"]
    assert not check.holds(WAITS)
    assert not objective_is_missing(tmp_path)


def test_each_of_several_objectives_must_show(tmp_path: Path) -> None:
    first, waits = (
        job(n, p, a, further="maximize size") for n, p, a in [("a", Phase.SUCCEEDED, 1), ("z", Phase.PENDING, 0)]
    )
    around = Around([first, waits], known={"uid.s.a": sample()}, tracked={"uid.s.a": {"loss", "sise"}})
    check = checked(tmp_path, around)
    assert "never logged 'size', which its sweep goes by: it logged sise" in news(check)[0]
    assert check.holds(waits)
    around.known = {"uid.s.a": sample(("size", 3.0))}
    news(check)
    assert not check.holds(waits)


def test_trials_that_have_begun_and_other_sweeps_are_not_held(tmp_path: Path) -> None:
    other, begun = job("z", Phase.PENDING, 0, sweep="other"), job("b", Phase.PENDING, 1)
    check = checked(tmp_path, Around([job("a", Phase.SUCCEEDED), begun, other, WAITS]))
    news(check)
    assert [check.holds(one) for one in (begun, other, WAITS)] == [False, False, True]
    assert check.why_over() is None


def test_nobody_is_held_where_all_are_to_train_anyway(tmp_path: Path) -> None:
    check = checked(tmp_path, Around([job("a", Phase.SUCCEEDED), WAITS]), holding=False)
    assert len(news(check)) == 1
    assert not check.holds(WAITS)
    assert check.why_over() is None


def test_a_sweep_without_trials_that_wait_ends_by_itself(tmp_path: Path) -> None:
    check = checked(tmp_path, Around([job("a", Phase.SUCCEEDED), job("b", Phase.SUSPENDED)]))
    assert len(news(check)) == 2
    assert check.why_over() is None
