"""Population based training: who goes on from whose checkpoint, when, and who trains first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.actions import Action, Clone, Place, Suspend
from controllers.core.model import Direction, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.core.policy import dump_state, load_state
from controllers.policies import Population
from controllers.policies.kit.settings import PolicyParameterError
from controllers.policies.population.members import MOST_TRIES, PopulationMember, PopulationState
from tests.controllers.policies.policy_fakes import node, snapshot, trial
from tests.property_examples import examples

STEPS = 20
NODES = (node("x", 100.0),)
HERE = (NodeName("x"),)
QUICK = Population(perturbation_interval=0.25, quantile=0.25)


def member(name: str, step: int, value: float, **changes: Any) -> Trial:  # noqa: ANN401 - fields of Trial
    """A trial that runs, and has made ``step`` of its steps (0 for none), the last with that loss."""
    progress = Progress(9.0, value, value, step - 1, 50.0, steps_total=STEPS) if step else None
    return trial(name, "x", search="s", parameters=(("lr", 0.1),), **{"progress": progress, **changes})


def suspended(known: Trial) -> Trial:
    return replace(known, phase=Phase.SUSPENDED, nodes=(), gated=True, suspensions=known.suspensions + 1)


def actions(
    trials: Sequence[Trial], state: PopulationState | None = None, policy: Population = QUICK, cpu: float = 100.0
) -> tuple[list[Action], PopulationState]:
    decision = policy.decide(snapshot(60.0, trials, (node("x", cpu),)), state or policy.initial())
    return [one.action for one in decision.proposals], decision.state


def four(step: int = 5) -> list[Trial]:
    return [member(f"t{number}", step, float(number)) for number in range(4)]


def test_the_worst_at_an_interval_is_suspended_cloned_from_the_best_and_placed() -> None:
    trials = four()
    wanted, state = actions(trials)
    assert wanted == [Suspend(TrialId("t3"))]
    trials[3] = suspended(trials[3])
    wanted, state = actions(trials, state)
    (clone,) = wanted
    assert isinstance(clone, Clone)
    assert (clone.trial, clone.parent, clone.explore.factors, clone.explore.names) == ("t3", "t0", (0.8, 1.2), ())
    trials[3] = replace(trials[3], lineage=(TrialId("t0"),))
    wanted, state = actions(trials, state)
    assert wanted == [Place(TrialId("t3"))]
    assert state.members[TrialId("t3")] == PopulationMember((0.0,), 1, 4, clones=1)


def test_nobody_is_compared_before_most_have_come_as_far() -> None:
    trials = [*four()[2:], member("t0", 4, 0.0), member("t1", 4, 0.0)]
    assert actions(trials)[0] == []


def test_a_trial_is_compared_once_at_an_interval() -> None:
    trials = four()
    _, state = actions(trials)
    trials[3] = replace(suspended(trials[3]), lineage=(TrialId("t0"),))
    _, state = actions(trials, state)
    trials = [member("t0", 6, 9.0), *four(6)[1:3], replace(trials[3], phase=Phase.RUNNING, gated=False, nodes=HERE)]
    assert actions(trials, state)[0] == []


def test_what_a_clone_reported_before_is_not_held_against_it() -> None:
    trials = four(9)
    _, state = actions(trials)
    trials[3] = replace(suspended(trials[3]), lineage=(TrialId("t0"),))
    _, state = actions(trials, state)
    back = replace(trials[3], phase=Phase.RUNNING, gated=False, nodes=HERE)
    _, state = actions([*four(10)[:3], back], state)
    assert state.members[TrialId("t3")].losses == (0.0,)
    _, state = actions([*four(10)[:3], replace(back, progress=member("t3", 10, 0.5).progress)], state)
    assert state.members[TrialId("t3")].losses == (0.0, 0.5)


def test_the_best_is_the_greatest_where_an_objective_is_maximised() -> None:
    trials = [replace(one, direction=Direction.MAXIMIZE) for one in four()]
    assert actions(trials)[0] == [Suspend(TrialId("t0"))]


def test_trials_that_are_equally_good_stay() -> None:
    assert actions([member(f"t{number}", 5, 1.0) for number in range(4)])[0] == []


def test_a_trial_that_diverged_counts_as_the_worst_wherever_it_stands() -> None:
    trials = [*four()[1:], member("t0", 2, 0.0, diverged=True)]
    trials.append(member("t4", 5, 9.0))
    wanted, state = actions(trials)
    assert wanted == [Suspend(TrialId("t0"))]
    trials[3] = replace(suspended(trials[3]), lineage=(TrialId("t1"),))
    _, state = actions(trials, state)
    again = replace(trials[3], phase=Phase.RUNNING, gated=False, nodes=HERE)
    assert actions([*trials[:3], again, trials[4]], state)[0] == []


def test_however_many_diverged_they_go_on_from_the_others() -> None:
    lost = [member(f"t{number}", 2, 0.0, diverged=True) for number in (4, 5, 6)]
    wanted, _ = actions([*four(), *lost], policy=Population(perturbation_interval=0.25, quantile=0.5))
    assert wanted == [Suspend(TrialId(f"t{number}")) for number in (4, 5, 6)]


@pytest.mark.parametrize("changes", [{"search": ""}, {"parameters": ()}, {"max_workers": 2}])
def test_only_single_trials_of_a_search_become_clones(changes: dict[str, Any]) -> None:
    trials = four()
    trials[3] = replace(trials[3], **changes)
    assert actions(trials)[0] == []


def test_trials_of_another_sweep_are_no_parents() -> None:
    trials = [replace(one, sweep=str(place % 2)) for place, one in enumerate(four())]
    wanted, state = actions(trials)
    assert wanted == [Suspend(TrialId("t2")), Suspend(TrialId("t3"))]
    assert {name: state.members[TrialId(name)].parent for name in ("t2", "t3")} == {"t2": "t0", "t3": "t1"}


def test_a_trial_whose_clone_is_refused_again_and_again_goes_on_as_it_is() -> None:
    trials = four()
    _, state = actions(trials)
    trials[3] = suspended(trials[3])
    asked = 0
    while isinstance((wanted := actions(trials, state))[0][0], Clone):
        asked, state = asked + 1, wanted[1]
    assert (asked, wanted[0]) == (MOST_TRIES, [Place(TrialId("t3"))])


def test_a_trial_goes_on_as_it_is_where_its_parent_has_ended() -> None:
    trials = four()
    _, state = actions(trials)
    trials = [replace(trials[0], phase=Phase.SUCCEEDED, nodes=()), *trials[1:3], suspended(trials[3])]
    assert actions(trials, state)[0] == [Place(TrialId("t3"))]


def test_where_there_is_no_room_for_all_those_that_have_come_least_far_go_first() -> None:
    new = [trial(name, phase=Phase.PENDING, gated=True, attempt=0, search="s") for name in ("t4", "t5")]
    early, late = member("t1", 3, 1.0), member("t2", 5, 1.0)
    assert actions([early, late, *new], cpu=2.0)[0] == [Suspend(TrialId("t2"))]
    leaving = replace(late, phase=Phase.SUSPENDING)
    assert actions([early, leaving, *new], cpu=2.0)[0] == []
    rested = suspended(late)
    assert actions([early, rested, *new], cpu=2.0)[0] == [Place(TrialId("t4"))]


def test_a_trial_makes_room_only_for_one_that_fits_in_its_place() -> None:
    large = trial("t4", cpu=2.0, phase=Phase.PENDING, gated=True, attempt=0, search="s")
    assert actions([member("t1", 5, 1.0), member("t2", 5, 1.0), large], cpu=2.0)[0] == []
    assert actions([member("t1", 5, 1.0), large], cpu=2.0)[0] == [Suspend(TrialId("t1"))]


def test_an_interval_may_be_a_number_of_steps_and_needs_the_length_of_a_training_otherwise() -> None:
    endless = [
        replace(one, progress=replace(one.progress, steps_total=None)) for one in four() if one.progress is not None
    ]
    assert actions(endless)[0] == []
    assert actions(endless, policy=Population(perturbation_interval=5, quantile=0.25))[0] == [Suspend(TrialId("t3"))]


def test_the_end_of_a_training_is_no_interval() -> None:
    wanted, state = actions(four(STEPS))
    assert len(state.members[TrialId("t0")].losses) == 3
    assert wanted == [Suspend(TrialId("t3"))]


def test_trials_that_wait_for_their_parents_checkpoint_do_not_wait_for_policies_behind() -> None:
    trials = four()
    _, state = actions(trials)
    trials[3] = suspended(trials[3])
    decision = QUICK.decide(snapshot(60.0, trials, NODES), state)
    assert decision.narrowed is not None
    assert not decision.narrowed.named[TrialId("t3")].waits


def test_hyperparameters_that_change_are_named_with_slashes_between() -> None:
    assert Population(change="lr / momentum").names == ("lr", "momentum")
    assert Population().names == ()


@pytest.mark.parametrize("setting", [{"quantile": 0.6}, {"lower": 1.1}, {"upper": 0.9}, {"perturbation_interval": 0}])
def test_settings_out_of_their_bounds_are_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(PolicyParameterError, match=next(iter(setting))):
        Population(**setting)


@dataclass
class Story:
    """A sweep on a node with room for three, whose world answers as real ones do: not always."""

    policy: Population
    trials: dict[TrialId, Trial] = field(default_factory=dict)
    state: PopulationState = field(default_factory=PopulationState)
    now: float = 0.0
    clones: dict[TrialId, list[int]] = field(default_factory=dict)
    tried: dict[TrialId, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(6):
            name = TrialId(f"t{number}")
            self.trials[name] = trial(
                name, phase=Phase.PENDING, gated=True, attempt=0, search="s", parameters=(("lr", 0.1),)
            )

    def happen(self, kind: str, number: int) -> None:
        self.now += 5.0
        name = TrialId(f"t{number % len(self.trials)}")
        known = self.trials[name]
        if kind == "train":
            for one in [one for one in self.trials.values() if one.phase is Phase.RUNNING]:
                self.step(one, 1 + (number + len(one.id)) % 3)
        elif kind == "leave":
            for one in [one for one in self.trials.values() if one.phase is Phase.SUSPENDING]:
                self.trials[one.id] = suspended(one)
        elif kind == "diverge" and known.phase is Phase.RUNNING:
            self.trials[name] = replace(known, diverged=True)
        elif kind == "fail" and not known.phase.ended and number % 5 == 0:
            self.trials[name] = replace(known, phase=Phase.FAILED, nodes=(), gated=False)
        elif kind == "restart":
            self.state = load_state(self.policy, dump_state(self.policy, self.state))
        elif kind == "forget":
            self.state = self.policy.initial()
        self.decide(refuses=kind == "refuse")

    def step(self, one: Trial, steps: int) -> None:
        made = min(STEPS, (one.progress.step + 1 if one.progress else 0) + steps)
        value = 1.0 / made + int(one.id[1:]) * 0.1 - 0.05 * len(one.lineage)
        changed = replace(
            one, progress=Progress(9.0, value, value, made - 1, self.now, steps_total=STEPS), diverged=False
        )
        ended = replace(changed, phase=Phase.SUCCEEDED, nodes=())
        self.trials[one.id] = ended if made == STEPS else changed

    def decide(self, *, refuses: bool) -> None:
        seen = snapshot(self.now, self.trials.values(), (node("x", 3.0),))
        decision = self.policy.decide(seen, self.state)
        assert decision == self.policy.decide(seen, self.state)
        self.state = decision.state
        acted = [proposal.action.trial for proposal in decision.proposals]
        assert len(acted) == len(set(acted))
        for proposal in decision.proposals:
            assert proposal.reason
            self.check(proposal.action, seen)
            if not refuses:
                self.act(proposal.action)

    def check(self, action: Action, seen: Snapshot) -> None:
        known = seen.named[action.trial]
        match action:
            case Suspend():
                assert known.steady
            case Place():
                assert known.waits
            case Clone(parent=parent):
                assert known.phase is Phase.SUSPENDED
                assert parent != known.id
                assert not seen.named[parent].phase.ended
            case _:
                raise AssertionError(action)

    def act(self, action: Action) -> None:
        known = self.trials[action.trial]
        running = [one for one in self.trials.values() if one.nodes]
        if isinstance(action, Suspend):
            self.trials[known.id] = replace(known, phase=Phase.SUSPENDING)
        elif isinstance(action, Clone):
            step = known.progress.step if known.progress else -1
            self.clones.setdefault(known.id, []).append(step)
            self.trials[known.id] = replace(known, lineage=(*known.lineage, action.parent))
        elif len(running) < 3:
            self.trials[known.id] = replace(known, phase=Phase.RUNNING, nodes=HERE, gated=False)


KINDS = ["train"] * 6 + ["leave"] * 4 + ["refuse", "diverge", "fail", "restart", "forget"]


@settings(max_examples=examples(60))
@given(events=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 40)), max_size=60))
def test_whatever_happens_actions_fit_their_trials_and_all_come_to_their_end(events: list[tuple[str, int]]) -> None:
    story = Story(Population(perturbation_interval=0.2, quantile=0.34))
    for kind, number in events:
        story.happen(kind, number)
    for turn in range(400):
        if all(one.phase.ended for one in story.trials.values()):
            break
        story.happen(("leave", "train")[turn % 2], turn)
    assert all(one.phase.ended for one in story.trials.values()), story.trials
    kinds = [kind for kind, _ in events]
    most = math.ceil(1 / 0.2) - 1
    if "forget" not in kinds and "diverge" not in kinds:
        assert all(len(steps) <= most for steps in story.clones.values()), story.clones
