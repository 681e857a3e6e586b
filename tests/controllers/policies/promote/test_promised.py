"""Promote by a promised risk: what is known of curves, how likely trials are, who goes on, and when all is over."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Place, Stop, Suspend
from controllers.core.model import Direction, Phase, Progress
from controllers.core.policy import dump_state, load_state
from controllers.core.promises import kept_in
from controllers.policies import Promote
from controllers.policies.kit.settings import PolicyError
from controllers.policies.promote.curves import PARTS, extended, whole
from controllers.policies.promote.promised import bound_of, looks_after
from controllers.policies.registry import parse_policy
from tests.controllers.policies.policy_fakes import node, snapshot, trial

NODES = (node("w1", 2.0), node("w2", 2.0))


def at(part: float, value: float) -> Progress:
    return Progress(9.0, value, value, round(part * 100) - 1, 50.0, steps_total=100)


def curve(*points: tuple[float, float]) -> tuple[float, ...]:
    """Return the curve of a trial that had come to these losses by these parts of its training."""
    known: tuple[float, ...] = ()
    for part, loss in points:
        known = extended(known, at(part, loss), Direction.MINIMIZE, None)
    return known


class Sweep:
    """A sweep that is looked at again and again: its trials change, and the policy's state is kept as JSON between.

    Each trial can use one core.
    """

    def __init__(self, count: int, **settings: Any) -> None:  # noqa: ANN401 - of the policy
        self.policy = Promote(risk=0.05, **settings)
        self.state = self.policy.initial()
        self.now = 60.0
        self.trials = {
            name: trial(name, phase=Phase.PENDING, gated=True, attempt=0)
            for name in (f"t{number:02d}" for number in range(count))
        }

    def runs(self, name: str, part: float, loss: float, where: str = "w1") -> None:
        self.trials[name] = trial(name, where, progress=at(part, loss), threads=1)

    def rests(self, name: str, part: float, loss: float) -> None:
        waits = trial(name, phase=Phase.SUSPENDED, gated=True, progress=at(part, loss), suspensions=1)
        self.trials[name] = replace(waits, threads=1)

    def ends(self, name: str, loss: float) -> None:
        self.trials[name] = trial(name, phase=Phase.SUCCEEDED, progress=at(1.0, loss))

    def look(self) -> dict[str, list[str]]:
        """Return who is placed (in order), suspended and stopped."""
        decision = self.policy.decide(snapshot(self.now, tuple(self.trials.values()), NODES), self.state)
        self.state = load_state(self.policy, dump_state(self.policy, decision.state))
        found: dict[str, list[str]] = {"placed": [], "suspended": [], "stopped": []}
        for proposal in decision.proposals:
            kind = {Place: "placed", Suspend: "suspended", Stop: "stopped"}[type(proposal.action)]
            found[kind].append(str(proposal.action.trial))
        self.reasons = {str(proposal.action.trial): proposal.reason for proposal in decision.proposals}
        stops = [proposal.action for proposal in decision.proposals if isinstance(proposal.action, Stop)]
        self.left = next((kept.left for stop in stops if (kept := kept_in(stop.why)) is not None), None)
        return found


def test_a_curve_has_the_best_loss_by_each_fiftieth_part_however_rarely_anybody_looks() -> None:
    assert curve((0.01, 5.0)) == ()
    assert curve((0.04, 3.0), (0.10, 2.0), (0.14, 2.5)) == (3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 2.0)
    assert extended((), at(0.04, 0.5), Direction.MAXIMIZE, None) == (-0.5, -0.5)
    assert whole((3.0, 2.0)) == (3.0, *(2.0,) * (PARTS - 1))
    assert whole(()) == ()


LOSSES = st.floats(0.01, 100)


def test_a_warm_up_comes_before_all_looks() -> None:
    assert looks_after(0.5)[:2] == pytest.approx((0.54, 0.56))
    sweep = Sweep(8, warmup=0.5)
    sweep.look()
    for number in range(4):
        sweep.runs(f"t{number:02d}", 0.5, 2.0 + number)
    assert sweep.look()["suspended"] == []
    sweep.runs("t03", 0.54, 5.0)
    assert sweep.look()["suspended"] == ["t03"]


@pytest.mark.parametrize("two", ["finish=best,risk=0.05", "risk=0.05,rungs=best", "finish=fast,rungs=fast"])
def test_only_one_setting_says_when_trials_are_ended(two: str) -> None:
    with pytest.raises(PolicyError, match="both say when trials are ended: leave one out"):
        parse_policy(f"promote:{two}")


@pytest.mark.parametrize(
    ("given", "promise"),
    [
        *((given, None) for given in ("", ":finish=all", ":rungs=best", ":rungs=fast")),
        *((":finish=best", 0.05), (":finish=fast", 0.2), (":risk=0.1", 0.1)),
    ],
)
def test_each_level_but_the_first_promises_a_risk_and_fixed_rungs_promise_nothing(
    given: str, promise: float | None
) -> None:
    policy = parse_policy(f"promote{given}")
    assert isinstance(policy, Promote)
    assert policy.promise == promise


@pytest.mark.parametrize("risk", ["0", "0.00009", "0.21", "-1"])
def test_a_risk_that_cannot_be_promised_is_refused_with_its_value(risk: str) -> None:
    with pytest.raises(PolicyError, match=rf"risk must be a number in \[0.0001, 0.2\], got {risk}"):
        parse_policy(f"promote:risk={risk}")


@pytest.mark.parametrize(("promise", "bound"), [(0.2, 0.5), (0.1, 0.3), (0.05, 0.2), (0.02, 0.1), (0.01, 0.05)])
def test_a_smaller_promise_has_a_stricter_bound_and_so_has_a_small_sweep(promise: float, bound: float) -> None:
    assert bound_of(promise, 100) == pytest.approx(bound)
    assert bound_of(promise, 60) == pytest.approx(0.75 * bound)


def test_all_come_to_the_first_look_but_two_that_are_trained_to_their_end() -> None:
    sweep = Sweep(8)
    assert sweep.look()["placed"] == ["t00", "t01", "t02", "t03"]
    for number in range(4):
        sweep.runs(f"t{number:02d}", 0.08, 2.0 + number)
    found = sweep.look()
    assert (found["suspended"], found["stopped"]) == (["t03", "t02"], [])
    sweep.rests("t02", 0.08, 4.0)
    sweep.rests("t03", 0.08, 5.0)
    assert sweep.look()["placed"] == ["t04", "t05"]  # new ones, before any goes on


def test_where_nobody_waits_for_its_place_a_trial_goes_on_past_its_look() -> None:
    sweep = Sweep(4)
    sweep.look()
    for number in range(4):
        sweep.runs(f"t{number:02d}", 0.2, 2.0 + number)
    assert sweep.look() == {"placed": [], "suspended": [], "stopped": []}


def test_a_free_place_goes_to_the_likeliest_and_a_far_less_likely_one_gives_way_at_its_look() -> None:
    sweep = Sweep(8)
    losses = {f"t{number:02d}": 2.0 + 0.1 * number for number in range(8)}
    for name, loss in losses.items():
        sweep.rests(name, 0.08, loss)
    sweep.look()
    sweep.runs("t00", 0.5, 1.6)
    sweep.runs("t01", 0.9, 1.3)
    sweep.look()
    sweep.ends("t00", 1.0)
    sweep.runs("t07", 0.12, 2.7)  # it has gained nothing since its first look
    assert sweep.look()["placed"] == ["t02", "t03"]  # and two run
    for name in ("t02", "t03"):
        sweep.runs(name, 0.1, losses[name])
    assert "t02" not in sweep.look()["suspended"]  # it has passed the look that it waited at
    sweep.rests("t04", 0.1, 1.2)  # far likelier than the one that has gained nothing
    sweep.runs("t07", 0.18, 2.7)
    assert sweep.look()["suspended"] == ["t07"]


def test_a_trial_that_goes_on_trains_for_twice_as_long_as_that_took_before_it_waits_again() -> None:
    sweep = Sweep(8)
    for number in range(8):
        sweep.rests(f"t{number:02d}", 0.08, 2.0 + 0.1 * number)
    sweep.look()
    sweep.runs("t00", 0.5, 1.6)
    sweep.runs("t01", 0.9, 1.3)
    sweep.look()
    sweep.ends("t00", 1.0)
    sweep.now = 100.0
    assert "t02" in sweep.look()["placed"]
    sweep.rests("t04", 0.1, 1.2)  # far likelier from here on
    for name in ("t03", "t05"):
        sweep.runs(name, 0.1, 2.2, "w2")
    waits_again = {}
    for now, part in ((120.0, 0.08), (130.0, 0.12), (189.0, 0.14), (190.0, 0.14)):  # it took 30 s to the next step
        sweep.now = now
        sweep.runs("t02", part, 2.2)
        waits_again[now] = "t02" in sweep.look()["suspended"]
    assert waits_again == {120.0: False, 130.0: False, 189.0: False, 190.0: True}


def test_all_is_over_once_what_is_left_keeps_the_promise_and_the_reason_says_so() -> None:
    sweep = Sweep(6)
    for name in ("t00", "t01"):
        sweep.runs(name, 0.5, 1.5)
    for number in range(2, 6):
        sweep.rests(f"t{number:02d}", 0.08, 50.0 + number)
    sweep.look()
    sweep.ends("t00", 1.0)
    sweep.look()
    sweep.ends("t01", 1.4)
    found = sweep.look()
    assert found["stopped"] == ["t02", "t03", "t04", "t05"]
    assert "2 of 6 trials were trained to their end" in sweep.reasons["t05"]
    assert sweep.reasons["t05"].startswith("stopping: the promised risk of 5 % is kept: about one in 20 sweeps misses")


@pytest.mark.parametrize("by_owner", [True, False])
def test_what_later_trials_may_miss_adds_up_with_what_those_may_have_missed_that_were_stopped(by_owner: bool) -> None:  # noqa: FBT001 - or as promised
    sweep = Sweep(4)
    for name in ("t00", "t01"):
        sweep.runs(name, 0.5, 1.5)
    for name in ("t02", "t03"):
        sweep.rests(name, 0.08, 8.0)
    sweep.look()
    sweep.ends("t00", 1.0)
    if not by_owner:
        sweep.ends("t01", 1.4)
        assert sweep.look()["stopped"] == ["t02", "t03"]
        assert sweep.left is not None
        assert sweep.left < bound_of(0.05, 4) < 2 * sweep.left
    for name in ("t02", "t03"):
        sweep.trials[name] = trial(name, phase=Phase.STOPPED, progress=at(0.08, 8.0))
    sweep.ends("t01", 1.4)
    sweep.look()
    for name in ("t04", "t05"):
        sweep.rests(name, 0.08, 8.0)
    assert sweep.look()["stopped"] == (["t04", "t05"] if by_owner else [])


def test_nothing_is_over_while_a_trial_has_yet_to_come_to_its_first_look() -> None:
    sweep = Sweep(6)
    for name in ("t00", "t01"):
        sweep.runs(name, 0.5, 1.5)
    for number in range(2, 5):
        sweep.rests(f"t{number:02d}", 0.08, 50.0 + number)
    sweep.look()
    sweep.ends("t00", 1.0)
    sweep.ends("t01", 1.4)
    found = sweep.look()
    assert (found["stopped"], found["placed"][0]) == ([], "t05")


def test_a_trial_that_has_diverged_is_stopped_and_counts_for_nothing() -> None:
    sweep = Sweep(5)
    sweep.trials["t03"] = trial("t03", "w1", progress=at(0.5, 2.0), diverged=True)
    assert sweep.look()["stopped"] == ["t03"]


def test_trials_that_ended_before_it_was_set_raise_the_level_to_beat_and_tell_no_gains() -> None:
    sweep = Sweep(8)
    for number in range(3):
        sweep.ends(f"t{number:02d}", 1.0)
    assert sweep.look()["placed"] == ["t03", "t04", "t05", "t06"]
    sweep.runs("t03", 0.08, 3.0)
    sweep.runs("t04", 0.08, 3.0)
    sweep.runs("t05", 0.08, 2.0, "w2")
    sweep.runs("t06", 0.08, 2.5, "w2")
    assert sweep.look() == {"placed": [], "suspended": ["t06"], "stopped": []}  # t03 and t04 go to their end
    assert sweep.state.promised.completed == {}
    sweep.runs("t03", 0.9, 2.4)
    sweep.look()
    sweep.ends("t03", 2.3)
    sweep.look()
    assert len(sweep.state.promised.completed[""]) == 1


@given(st.integers(0, 4), st.integers(1, 30), st.data())
def test_no_place_stays_free_while_a_trial_waits(running: int, waiting: int, data: st.DataObject) -> None:
    sweep = Sweep(running + waiting)
    for number in range(running):
        sweep.runs(f"t{number:02d}", data.draw(st.floats(0.1, 0.9)), data.draw(LOSSES), f"w{1 + number % 2}")
    for number in range(running, running + waiting):
        if data.draw(st.booleans()):
            sweep.rests(f"t{number:02d}", 0.08, data.draw(LOSSES))
    assert len(sweep.look()["placed"]) == min(4 - running, waiting)


def test_where_a_first_trial_failed_another_is_trained_to_its_end_in_its_place() -> None:
    sweep = Sweep(8)
    sweep.look()
    sweep.trials["t00"] = trial("t00", phase=Phase.FAILED, progress=at(0.5, 2.0))
    for number in (1, 2, 3, 4):
        sweep.runs(f"t{number:02d}", 0.08, 2.0 + number, f"w{1 + number % 2}")
    assert sweep.look()["suspended"] == ["t04", "t03"]


def test_a_trial_that_was_suspended_as_often_as_the_sweep_has_attempts_for_passes_all_looks() -> None:
    sweep = Sweep(8)
    for number in range(4):
        sweep.runs(f"t{number:02d}", 0.08, 2.0 + number, f"w{1 + number % 2}")
    sweep.trials["t03"] = replace(sweep.trials["t03"], suspensions=6)
    assert sweep.look()["suspended"] == ["t02"]
