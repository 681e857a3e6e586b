"""A sweep is ended by its author's rules: what runs is stopped, what waits never starts, under any policy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from controllers.core.actions import Action, Decision, Place, Proposal, Resize, Stop
from controllers.core.model import Ask, Phase, Progress, Snapshot, Trial, TrialId
from controllers.core.policy import dump_state, load_state, state_after_another
from controllers.core.stop_rules import StopRules, Terminator, rules_of
from controllers.driving.assembly import guard_policy
from controllers.policies import Ahead, Fifo, Managed, UntilEnough
from controllers.policies.kit.settings import NoState
from tests.controllers.policies.policy_fakes import node, snapshot, trial

VALUE = rules_of(value=0.01)
WHY = "sweep ended: 0.001 reached 0.01"
GOOD = Progress(0.5, 0.001, 0.001, 10, 5.0)
A, B, C, D = map(TrialId, "abcd")


@dataclass(frozen=True)
class Busy:
    """Places whatever waits, resizes whatever runs, and remembers how often it was asked."""

    name: ClassVar[str] = "busy"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize})
    state_type: ClassVar[type[NoState]] = NoState

    def initial(self) -> NoState:
        return NoState()

    def decide(self, seen: Snapshot, state: NoState) -> Decision[NoState]:
        places = [Proposal(Place(one.id), "it waits") for one in seen.unended if one.waits]
        sizes = [Proposal(Resize(one.id, 2.0), "why not") for one in seen.unended if one.steady]
        return Decision(state, (*places, *sizes))


def of(sweep: str, *trials: Trial) -> tuple[Trial, ...]:
    return tuple(replace(one, sweep=sweep) for one in trials)


def until_enough(rules: Mapping[str, StopRules] | None = None) -> UntilEnough:
    return UntilEnough(policy=Busy(), rules={"vae": VALUE} if rules is None else rules)


def decided(policy: UntilEnough, *seen: Snapshot) -> list[Decision[Any]]:
    decisions, state = [], policy.initial()
    for one in seen:
        decisions.append(policy.decide(one, state))
        state = load_state(policy, dump_state(policy, decisions[-1].state))
    return decisions


def at(now: float, trials: Iterable[Trial]) -> Snapshot:
    return snapshot(now, trials, (node("n1"),))


WAITS = trial("b", phase=Phase.PENDING, gated=True)
SUSPENDED = trial("c", phase=Phase.SUSPENDED, gated=True, suspensions=1)
QUEUED = trial("d", phase=Phase.PENDING)


def test_as_long_as_no_rule_holds_the_policy_decides() -> None:
    (decision,) = decided(until_enough(), at(60.0, of("vae", trial("a", "n1"), WAITS)))
    assert [one.action for one in decision.proposals] == [Place(B), Resize(A, 2.0)]
    assert decision.wake_at == 70.0


def test_a_sweep_that_is_over_stops_what_runs_and_what_waits_whatever_the_policy_wants() -> None:
    seen = at(60.0, of("vae", trial("a", "n1", progress=GOOD), WAITS, SUSPENDED, QUEUED))
    (decision,) = decided(until_enough(), seen)
    assert [one.action for one in decision.proposals] == [Stop(name, WHY) for name in (A, B, C, D)]
    assert {one.reason for one in decision.proposals} == {WHY}


@pytest.mark.parametrize("phase", [Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING])
def test_a_trial_that_leaves_is_stopped_once_it_has_left(phase: Phase) -> None:
    seen = at(60.0, of("vae", trial("a", "n1", phase=phase, progress=GOOD)))
    (decision,) = decided(until_enough(), seen)
    assert decision.proposals == ()


def test_other_sweeps_go_on() -> None:
    seen = at(60.0, (*of("vae", trial("a", "n1", progress=GOOD)), *of("gru", trial("d", "n1", progress=GOOD), WAITS)))
    (decision,) = decided(until_enough(), seen)
    assert [one.action for one in decision.proposals] == [Stop(A, WHY), Place(B), Resize(D, 2.0)]


def test_what_is_over_stays_over_whatever_its_trials_look_like_later() -> None:
    first = at(60.0, of("vae", trial("a", "n1", progress=GOOD)))
    again = at(70.0, of("vae", trial("a", phase=Phase.FAILED, progress=GOOD), trial("b", "n1")))
    assert [one.action for one in decided(until_enough(), first, again)[1].proposals] == [Stop(B, WHY)]


def test_under_other_rules_a_sweep_goes_on() -> None:
    seen = at(60.0, of("vae", trial("a", "n1", progress=GOOD)))
    before = until_enough().decide(seen, until_enough().initial())
    stricter = until_enough({"vae": rules_of(value=0.0001)})
    assert [one.action for one in stricter.decide(seen, before.state).proposals] == [Resize(A, 2.0)]


def test_it_wakes_when_the_time_is_over() -> None:
    policy = until_enough({"vae": rules_of(after_s=12.0)})
    running = of("vae", trial("a", "n1"))
    first, second, third = decided(policy, at(0.0, running), at(10.0, running), at(12.0, running))
    assert (first.wake_at, second.wake_at, third.wake_at) == (10.0, 12.0, None)
    assert [one.action for one in third.proposals] == [Stop(A, "sweep ended: 12 s have passed")]


def test_a_sweep_whose_trials_have_ended_wakes_nobody() -> None:
    (decision,) = decided(until_enough(), at(60.0, of("vae", trial("a", phase=Phase.SUCCEEDED))))
    assert decision.wake_at is None


def test_the_state_stays_the_same_while_nothing_has_to_be_counted() -> None:
    policy = until_enough({"vae": rules_of(cpu_hours=40.0)})
    telling = of("vae", trial("a", "n1", progress=replace(GOOD, cpu_seconds=3.0)))
    first, second = decided(policy, at(0.0, telling), at(10.0, telling))
    assert first.state == second.state
    silent = of("vae", trial("a", "n1"))
    first, second = decided(policy, at(0.0, silent), at(10.0, silent))
    assert second.state.known.courses["vae"].held == {A: 10.0}


def test_another_policy_goes_on_with_what_is_known_of_the_sweep() -> None:
    rules = {"vae": rules_of(after_s=100.0)}
    ahead, fifo = (UntilEnough(policy=guard_policy(policy), rules=rules) for policy in (Ahead(), Fifo()))
    running = of("vae", trial("a", "n1"))
    before = ahead.decide(at(50.0, running), ahead.initial())
    state = state_after_another(fifo, dump_state(ahead, before.state))
    assert [one.action for one in fifo.decide(at(149.0, running), state).proposals] == []
    assert [one.action for one in fifo.decide(at(150.0, running), state).proposals] == [
        Stop(A, "sweep ended: 1.667 min have passed")
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"policy": 3}', '{"known": {"courses": 7}}', "null"])
def test_what_another_policy_left_may_be_anything(text: str) -> None:
    policy = until_enough()
    assert state_after_another(policy, text) == policy.initial()


def test_an_owner_who_paused_a_trial_does_not_keep_its_sweep_from_ending() -> None:
    policy = UntilEnough(policy=Managed(policy=Busy()), rules={"vae": VALUE})
    seen = at(60.0, of("vae", trial("a", "n1", progress=GOOD), trial("e", "n1"), SUSPENDED))
    asked = replace(seen, asked={TrialId("e"): Ask.PAUSE, C: Ask.PAUSE})
    decision = policy.decide(asked, policy.initial())
    assert [one.action for one in decision.proposals] == [Stop(name, WHY) for name in (A, C, TrialId("e"))]


def test_an_owner_is_heard_for_the_trials_of_other_sweeps() -> None:
    policy = UntilEnough(policy=Managed(policy=Busy()), rules={"vae": VALUE})
    trials = (*of("vae", trial("a", "n1", progress=GOOD)), *of("gru", trial("e", "n1")))
    decision = policy.decide(replace(at(60.0, trials), asked={TrialId("e"): Ask.STOP}), policy.initial())
    assert [type(one.action) for one in decision.proposals] == [Stop, Stop]


def test_a_terminator_is_asked_once_for_each_trial_that_comes_to_a_value() -> None:
    asked: list[int] = []

    def settles(_rule: Terminator, trials: Sequence[Trial]) -> str:
        asked.append(sum(one.phase.ended for one in trials))
        return "nothing better comes" if len(asked) == 2 else ""

    policy = UntilEnough(policy=Busy(), rules={"vae": rules_of(terminator={"trials": 1})}, settles=settles)
    first, second = (trial(name, "n1", phase=Phase.SUCCEEDED, progress=GOOD) for name in "ac")
    runs = trial("b", "n1", progress=GOOD)
    failed = trial("d", phase=Phase.FAILED, progress=GOOD)
    looks = [(runs,), (first, runs), (first, runs, failed), (first, second, runs), (first, second, runs)]
    decisions = decided(policy, *(at(float(now), of("vae", *seen)) for now, seen in enumerate(looks)))
    assert asked == [1, 2]
    why = "sweep ended: nothing better comes"
    stopped = [[one.reason for one in decision.proposals] for decision in decisions]
    assert stopped == [["why not"], ["why not"], ["why not"], [why], [why]]
