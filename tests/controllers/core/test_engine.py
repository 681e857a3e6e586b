"""The engine: what it shows a policy, what it refuses to carry out, and what survives its death."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest

from controllers.core.actions import Action, Assessment, Decision, Migrate, Proposal, Resize
from controllers.core.engine import Engine, Tick
from controllers.core.model import Category, Direction, Node, NodeName, Phase, Sample, Snapshot, Trial, TrialId
from controllers.core.ports import DONE, Outcome, OutcomeKind
from controllers.policies.wrappers.guarded import Guarded
from tests.controllers.quiet_world import QuietWorld

ONE, TWO = NodeName("one"), NodeName("two")


class Killed(BaseException):
    """The controller dies here."""


def trial(name: str = "a", **changes: object) -> Trial:
    base = Trial(TrialId(name), Phase.RUNNING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0, (ONE,), 1)
    return replace(base, **changes)  # type: ignore[arg-type] # any field of a trial


@dataclass(frozen=True)
class Count:
    """How often a policy was asked."""

    asked: int = 0


@dataclass(frozen=True)
class Scripted:
    """A policy that proposes the same actions every time."""

    name: ClassVar[str] = "scripted"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize, Migrate})
    actions: tuple[Action, ...] = ()
    wake_at: float | None = None

    @property
    def state_type(self) -> type[Count]:
        return Count

    def initial(self) -> Count:
        return Count()

    def decide(self, snapshot: Snapshot, state: Count) -> Decision[Count]:
        seen = {t.id: Assessment(Category.WATCHING, 0.5) for t in snapshot.trials}
        proposals = tuple(Proposal(action, "because") for action in self.actions)
        return Decision(Count(state.asked + 1), proposals, self.wake_at, seen)


@dataclass(frozen=True)
class Renamed(Scripted):
    """The same policy by another name."""

    name: ClassVar[str] = "renamed"


@dataclass
class FakeWorld(QuietWorld):
    """A world that does as it is told; ``looks`` are what it shows, one after the other."""

    looks: list[list[Trial]]
    ready: bool = True
    done: list[Action] = field(default_factory=list)
    die_on_apply: bool = False
    lookups: int = 0
    listings: int = 0

    def trials(self) -> Sequence[Trial]:
        self.listings += 1
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def nodes(self) -> Sequence[Node]:
        return [Node(TWO, 1.0, ready=self.ready), Node(ONE, 1.0)]

    def trial(self, name: TrialId) -> Trial | None:
        self.lookups += 1
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return next((trial for trial in look if trial.id == name), None)

    def apply(self, action: Action) -> Outcome:
        if self.die_on_apply:
            raise Killed
        self.done.append(action)
        return DONE


@dataclass
class FakeSource:
    """Metrics as given."""

    samples: Mapping[TrialId, Sample] = field(default_factory=dict)

    def poll(self) -> Mapping[TrialId, Sample]:
        return self.samples


@dataclass
class Kept:
    """What outlives the engine."""

    text: str | None = None
    urgent: bool = False

    def load(self) -> str | None:
        return self.text

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        self.urgent = urgent
        self.text = state()


@dataclass
class Tried:
    """An action log."""

    outcomes: list[Outcome] = field(default_factory=list)

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        assert now >= 0
        assert reason
        assert action.trial
        self.outcomes.append(outcome)


@dataclass
class Watcher:
    """Remembers what it was shown."""

    snapshots: list[Snapshot] = field(default_factory=list)
    reasons: dict[TrialId, str] = field(default_factory=dict)

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        assert set(assessments) == {t.id for t in snapshot.trials}
        self.snapshots.append(snapshot)
        self.reasons = dict(reasons)


def asked(store: Kept, policy: Scripted) -> int:
    """Return how often the policy in the store had been asked, seen through a new engine."""
    engine = Engine(policy, FakeWorld([[trial()]]), FakeSource(), store)
    return engine._state.asked


def test_an_accepted_action_is_carried_out_and_its_reason_shown() -> None:
    cluster, watcher = FakeWorld([[trial()]]), Watcher()
    action = Resize(TrialId("a"), 0.2)
    Engine(Scripted((action,)), cluster, FakeSource(), Kept(), observers=[watcher]).tick(1.0)
    assert cluster.done == [action]
    assert watcher.reasons == {TrialId("a"): "because"}


@pytest.mark.parametrize(
    "now_it_is",
    [trial(phase=Phase.SUCCEEDED, nodes=()), trial(nodes=(TWO,), attempt=2), trial(phase=Phase.MOVING)],
    ids=["ended", "elsewhere", "moving"],
)
def test_an_action_on_a_trial_that_has_changed_since_is_not_done_and_recorded(now_it_is: Trial) -> None:
    cluster, log = FakeWorld([[trial()], [now_it_is]]), Tried()
    Engine(Scripted((Migrate(TrialId("a"), (TWO,)),)), cluster, FakeSource(), Kept(), [log]).tick(1.0)
    assert cluster.done == []
    assert [outcome.kind for outcome in log.outcomes] == [OutcomeKind.CHANGED]


def test_a_move_to_a_node_that_is_not_ready_is_refused() -> None:
    cluster = FakeWorld([[trial()]], ready=False)
    Engine(Scripted((Migrate(TrialId("a"), (TWO,)),)), cluster, FakeSource(), Kept()).tick(1.0)
    assert cluster.done == []


def test_the_policy_sees_trials_and_nodes_sorted_with_their_progress() -> None:
    watcher = Watcher()
    source = FakeSource({TrialId("a"): Sample(0.5, 3, 9.0, first=1.0)})
    cluster = FakeWorld([[trial("b"), trial("a")]])
    Engine(Scripted(), cluster, source, Kept(), observers=[watcher]).tick(10.0)
    seen = watcher.snapshots[0]
    assert [t.id for t in seen.trials] == ["a", "b"]
    assert [n.name for n in seen.nodes] == ["one", "two"]
    assert seen.trials[0].progress is not None
    assert (seen.trials[0].progress.first, seen.trials[0].progress.latest) == (1.0, 0.5)
    assert seen.trials[1].progress is None


def test_what_the_guards_hold_back_is_recorded_with_their_objection() -> None:
    log, cluster = Tried(), FakeWorld([[trial(phase=Phase.MOVING)]])
    Engine(Guarded(policy=Scripted((Resize(TrialId("a"), 0.2),))), cluster, FakeSource(), Kept(), [log]).tick(1.0)
    assert cluster.done == []
    assert log.outcomes == [Outcome(OutcomeKind.VETOED, "the trial is moving")]


def test_progress_is_kept_while_the_metrics_are_away() -> None:
    watcher, source = Watcher(), FakeSource({TrialId("a"): Sample(0.5, 3, 9.0)})
    engine = Engine(Scripted(), FakeWorld([[trial()]]), source, Kept(), observers=[watcher])
    engine.tick(10.0)
    source.samples = {}
    engine.tick(20.0)
    assert watcher.snapshots[1].trials[0].progress == watcher.snapshots[0].trials[0].progress


def test_the_state_is_saved_before_anything_is_acted_upon() -> None:
    policy, store = Scripted((Resize(TrialId("a"), 0.2),)), Kept()
    engine = Engine(policy, FakeWorld([[trial()]], die_on_apply=True), FakeSource(), store)
    with pytest.raises(Killed):
        engine.tick(1.0)
    assert asked(store, policy) == 1


def test_a_new_engine_goes_on_with_state_progress_and_reasons() -> None:
    policy, store = Scripted((Resize(TrialId("a"), 0.2),)), Kept()
    source = FakeSource({TrialId("a"): Sample(0.5, 3, 9.0)})
    Engine(policy, FakeWorld([[trial()]]), source, store).tick(1.0)
    Engine(policy, FakeWorld([[trial()]]), source, store).tick(2.0)
    watcher = Watcher()
    Engine(policy, FakeWorld([[trial()]]), FakeSource(), store, observers=[watcher]).tick(3.0)
    assert asked(store, policy) == 3
    assert watcher.snapshots[0].trials[0].progress is not None
    assert watcher.reasons == {TrialId("a"): "because"}


@pytest.mark.parametrize("text", ["", "{}", '{"policy": "scripted", "decisions": "[]"}'])
def test_a_state_that_makes_no_sense_starts_the_policy_anew(text: str) -> None:
    assert asked(Kept(text), Scripted()) == 0


def test_another_policys_state_is_not_taken_over() -> None:
    store = Kept()
    Engine(Scripted(), FakeWorld([[trial()]]), FakeSource(), store).tick(1.0)
    assert asked(store, Renamed()) == 0


def test_the_policy_says_when_it_wants_to_be_asked_again() -> None:
    engine = Engine(Scripted(wake_at=30.0), FakeWorld([[trial()]]), FakeSource(), Kept())
    assert engine.tick(1.0) == Tick(wake_at=30.0, refused=False)


@pytest.mark.parametrize(("ready", "refused"), [(True, False), (False, True)])
def test_a_tick_tells_whether_anything_that_was_wanted_was_not_done(*, ready: bool, refused: bool) -> None:
    policy = Scripted((Migrate(TrialId("a"), (TWO,)),))
    engine = Engine(policy, FakeWorld([[trial()]], ready=ready), FakeSource(), Kept())
    assert engine.tick(1.0).refused is refused


def test_rechecking_many_actions_looks_each_trial_up_and_lists_the_world_once() -> None:
    names = [f"t{number}" for number in range(20)]
    cluster = FakeWorld([[trial(name) for name in names]])
    policy = Scripted(tuple(Resize(TrialId(name), 0.2) for name in names))
    Engine(policy, cluster, FakeSource(), Kept()).tick(1.0)
    assert len(cluster.done) == 20
    assert (cluster.listings, cluster.lookups) == (1, 20)


@pytest.mark.parametrize("gone", [[], [trial("b")]], ids=["nothing left", "another one left"])
def test_an_action_on_a_trial_that_is_gone_is_refused(gone: list[Trial]) -> None:
    cluster, log = FakeWorld([[trial()], gone]), Tried()
    Engine(Scripted((Resize(TrialId("a"), 0.2),)), cluster, FakeSource(), Kept(), [log]).tick(1.0)
    assert cluster.done == []
    assert log.outcomes == [Outcome(OutcomeKind.CHANGED, "the trial is gone")]
