"""Worked examples of TRADL: who is past its target makes room."""

from typing import Any

import pytest

from controllers.core.actions import Decision
from controllers.core.model import Direction, Goals, Progress, Trial
from controllers.policies import Tradl
from tests.controllers.policies.policy_fakes import node, resizes, snapshot, trial


def training(name: str, best: float, target: float | None, first: float = 9.0, **changes: Any) -> Trial:  # noqa: ANN401
    progress = Progress(first, best, best, 5, 10.0)
    return trial(name, "n", progress=progress, goals=Goals(target=target), **changes)


def decided(*trials: Trial) -> Decision[Any]:
    return Tradl().decide(snapshot(10.0, trials, [node("n", 4.0)]), Tradl().initial())


def test_a_trial_past_its_target_keeps_a_tenth_and_the_others_share_the_rest_by_what_they_asked_for() -> None:
    decision = decided(training("a", 0.2, 0.5), training("b", 0.8, 0.5), training("c", 0.8, None, cpu=2.0))
    assert resizes(decision) == {"a": pytest.approx(0.1), "b": pytest.approx(1.3), "c": pytest.approx(2.6)}
    assert {str(p.action.trial): p.reason for p in decision.proposals}["a"] == "past its target: the others go first"


def test_a_target_once_reached_stays_reached_though_the_newest_report_is_worse() -> None:
    worse = training("a", 0.2, 0.5)
    assert worse.progress is not None
    later = Progress(9.0, 0.2, 0.9, 6, 20.0)
    decision = decided(trial("a", "n", progress=later, goals=worse.goals), training("b", 0.8, 0.5))
    assert resizes(decision)["a"] == pytest.approx(0.1)


def test_a_target_of_a_maximised_objective_lies_above() -> None:
    up: dict[str, Any] = {"direction": Direction.MAXIMIZE, "first": 0.1}
    decision = decided(training("a", 0.9, 0.8, **up), training("b", 0.7, 0.8, **up))
    assert set(resizes(decision)) == {"a", "b"}
    assert resizes(decision)["a"] == pytest.approx(0.1)


def test_once_all_have_reached_theirs_each_has_again_what_it_asked_for() -> None:
    shrunk = training("a", 0.2, 0.5, base_cpu=1.0, cpu=0.1)
    grown = training("b", 0.3, 0.5, base_cpu=1.0, cpu=1.9)
    assert resizes(decided(shrunk, grown)) == {"a": pytest.approx(1.0), "b": pytest.approx(1.0)}


def test_nothing_changes_where_no_trial_has_a_target() -> None:
    assert resizes(decided(training("a", 0.2, None), training("b", 0.3, None))) == {}
