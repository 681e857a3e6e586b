"""The one rule for objectives that come late, misspelt or never: warnings in a running sweep, errors at its end."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from controllers.core.model import Phase, Trial, TrialId
from controllers.core.objectives import (
    MOST_NAMES,
    ObjectiveWatch,
    missing_objectives,
    others,
    with_what_they_logged,
)
from controllers.core.results import RunResult, TrialResult
from tests.controllers.policies.policy_fakes import trial
from tests.controllers.quiet_world import QuietWorld

A, B = TrialId("a"), TrialId("b")
OTHER_METRICS = frozenset({"train_loss", "epoch"})


@dataclass
class OneSweep(QuietWorld):
    """A world of trials in phases, all with the objective ``val_loss``."""

    phases: dict[TrialId, Phase] = field(default_factory=lambda: {A: Phase.RUNNING})

    def trials(self) -> Sequence[Trial]:
        return [trial(name, "n", phase=phase) for name, phase in self.phases.items()]

    def objectives(self) -> Mapping[TrialId, str]:
        return dict.fromkeys(self.phases, "val_loss")


def told(world: OneSweep, *looks: tuple[float, Collection[str]]) -> list[tuple[float, str]]:
    """Return when the watch told what of trial a, which had logged so much at each of ``looks``."""
    watch, found = ObjectiveWatch(), list[tuple[float, str]]()
    for now, names in looks:
        found += [(now, words) for words in watch.look(now, world, {A: names}).values()]
    return found


def test_an_objective_that_comes_later_than_other_metrics_is_waited_for() -> None:
    assert told(OneSweep(), (0.0, OTHER_METRICS), (59.0, OTHER_METRICS), (90.0, {*OTHER_METRICS, "val_loss"})) == []


def test_a_trial_that_logs_others_for_more_than_a_minute_is_told_of_once_with_what_it_logs() -> None:
    looks = [(float(now), OTHER_METRICS) for now in range(0, 300, 30)]
    ((at, words),) = told(OneSweep(), *looks)
    assert at > 60
    assert words.startswith("trial a logs train_loss, epoch, and has not logged its objective 'val_loss' so far")
    assert "(did you mean 'train_loss'?)" in words
    assert "Sweep(objective=...)" in words


@pytest.mark.parametrize("names", [frozenset[str](), frozenset({"specon.cpu_seconds", "system/cpu_utilization"})])
def test_a_trial_that_has_logged_nothing_of_its_own_is_not_told_of(names: Collection[str]) -> None:
    assert told(OneSweep(), (0.0, names), (1e6, names)) == []


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.MOVING, Phase.SUSPENDED, Phase.FAILED, Phase.STOPPED])
def test_a_trial_that_does_not_train_or_failed_is_not_told_of(phase: Phase) -> None:
    assert told(OneSweep({A: phase}), (0.0, OTHER_METRICS), (1e6, OTHER_METRICS)) == []


def test_the_last_points_of_a_trial_that_ended_well_get_their_time_to_mlflow() -> None:
    world, watch = OneSweep(), ObjectiveWatch()
    assert not watch.look(0.0, world, {A: OTHER_METRICS})
    world.phases[A] = Phase.SUCCEEDED
    # It ended long after it began, but this look is the first to see that.
    assert not watch.look(50.0, world, {A: OTHER_METRICS})
    assert not watch.look(64.0, world, {A: OTHER_METRICS})
    assert watch.look(66.0, world, {A: OTHER_METRICS}).keys() == {A}


def test_those_that_lack_it_are_counted_until_they_log_it() -> None:
    world, watch = OneSweep({A: Phase.RUNNING, B: Phase.RUNNING}), ObjectiveWatch()
    for now in (0.0, 61.0):
        watch.look(now, world, {A: OTHER_METRICS, B: OTHER_METRICS})
    assert watch.without == 2
    assert not watch.look(62.0, world, {A: {"val_loss"}, B: OTHER_METRICS})
    assert watch.without == 1


def test_of_many_trials_the_first_few_are_told() -> None:
    names = [TrialId(f"t{number:02d}") for number in range(20)]
    world, watch = OneSweep(dict.fromkeys(names, Phase.RUNNING)), ObjectiveWatch()
    looks = [watch.look(now, world, dict.fromkeys(names, OTHER_METRICS)) for now in (0.0, 61.0, 62.0)]
    assert [len(warnings) for warnings in looks] == [0, 5, 0]
    assert watch.without == 20


def test_names_that_anybody_logs_by_the_thousand_are_bounded_and_the_likest_come_first() -> None:
    many = [f"layer{number}/{'x' * 1000}" for number in range(5000)]
    found = others("val_loss", [*many, "Val_Loss", "specon.cpu_seconds", "system/gpu"])
    assert found[0] == "Val_Loss"
    assert len(found) == MOST_NAMES
    assert max(map(len, found)) <= 100


def result(name: str, *, sweep: str = "s", succeeded: bool = True, stopped: str = "") -> TrialResult:
    """Return how a trial went, where nobody knows what it logged."""
    base = TrialResult(name, 0.0, 10.0, "n", 0, 1, None, succeeded=succeeded, stopped=stopped)
    return replace(base, objective="val_loss", sweep=sweep)


def over(logged: Mapping[str, Collection[str] | None], *trials: TrialResult) -> RunResult:
    return RunResult("default", with_what_they_logged(trials, lambda one: logged[one.id]))


def test_a_trial_that_logged_its_objective_or_of_which_nobody_knows_lacks_nothing() -> None:
    found = over({"a": {"val_loss", "epoch"}, "b": None, "c": {"epoch"}}, result("a"), result("b"), result("c"))
    assert [one.logged_instead for one in found.trials] == [None, None, ("epoch",)]


def test_a_trial_without_an_objective_lacks_none() -> None:
    (one,) = with_what_they_logged([replace(result("a"), objective="")], lambda _: {"epoch"})
    assert one.logged_instead is None


def test_a_sweep_of_which_no_trial_logged_it_although_one_ended_well_is_an_error_that_says_what_to_do() -> None:
    missing = missing_objectives(over({"a": OTHER_METRICS, "b": {"epoch"}}, result("a"), result("b", succeeded=False)))
    assert missing.warnings == ()
    (words,) = missing.errors
    assert "no trial of s logged its objective 'val_loss', although 1 ended well" in words
    assert "train_loss" in words
    assert "did you mean 'train_loss'?" in words


def test_where_nothing_at_all_was_logged_the_error_says_how_to_log() -> None:
    (words,) = missing_objectives(over({"a": ()}, result("a"))).errors
    assert "they logged nothing at all: log it with t.log(val_loss=...)" in words


def test_a_trial_that_crashed_before_it_came_to_log_it_just_failed() -> None:
    crashed = result("a", succeeded=False)
    assert missing_objectives(over({"a": {"epoch"}, "b": {"val_loss"}}, crashed, result("b"))).lines == ()
    assert missing_objectives(over({"a": {"epoch"}}, crashed)).lines == ()


def test_a_trial_that_a_policy_ended_early_need_not_have_logged_it() -> None:
    assert missing_objectives(over({"a": {"epoch"}}, result("a", stopped="not among the best"))).lines == ()


def test_where_one_trial_logged_it_the_others_are_warnings_that_name_them() -> None:
    missing = missing_objectives(over({"a": {"val_loss"}, "b": {"epoch"}}, result("a"), result("b")))
    assert missing.errors == ()
    assert missing.warnings == (
        "b ended well under default, but never logged its objective 'val_loss': it logged epoch",
    )


def test_where_nobody_knows_of_one_trial_the_sweep_is_no_error() -> None:
    missing = missing_objectives(over({"a": None, "b": {"epoch"}}, result("a"), result("b")))
    assert (missing.errors, len(missing.warnings)) == ((), 1)


def test_one_sweep_without_its_objective_is_an_error_beside_another_that_has_it() -> None:
    missing = missing_objectives(over({"a": {"val_loss"}, "b": {"epoch"}}, result("a"), result("b", sweep="other")))
    assert [words.split(" logged")[0] for words in missing.errors] == ["no trial of other"]


def test_of_many_silent_trials_a_few_are_named_and_the_rest_counted() -> None:
    names = [f"t{number}" for number in range(20)]
    logged = {**dict.fromkeys(names, frozenset({"epoch"})), "a": {"val_loss"}}
    warnings = missing_objectives(over(logged, result("a"), *map(result, names))).warnings
    assert len(warnings) == 6
    assert warnings[-1] == "and 15 more never logged it"
