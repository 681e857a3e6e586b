"""The level-triggered heart: observe, decide, recheck, act, record. Never sleeps, knows no world."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, assert_never

from pydantic import TypeAdapter, ValidationError

from controllers.core.actions import Action, Clone, Migrate, Place, Proposal, Resize, Stop, Suspend, why_no_gang
from controllers.core.bill import Bill, bill_after
from controllers.core.earlier import NOTHING_EARLIER, Earlier
from controllers.core.errors import SearchError, SearchPending
from controllers.core.goals import with_goals_told
from controllers.core.model import NodeName, Point, Progress, Snapshot, Trial, TrialId
from controllers.core.node_kinds import KnownKinds, believed_kinds, came_since, kinds_after
from controllers.core.policy import Policy, PolicyStateError, dump_state, load_state, state_after_another
from controllers.core.ports import (
    ActionLog,
    MetricSource,
    Observer,
    Outcome,
    OutcomeKind,
    Requests,
    Search,
    StateStore,
    World,
    refused,
)
from controllers.core.sight import Sight
from controllers.core.supply import Supply, supply_after, with_supply

S = TypeVar("S")
Explore = Callable[[Trial, Trial, Clone], Point]
"""Returns the hyperparameters of a trial that goes on from another's checkpoint; raises ``SearchError``."""


@dataclass(frozen=True)
class Memory:
    """What the engine itself must remember between ticks, beside the policy's state.

    ``points`` are the hyperparameters that searches found, ``supply`` what others leave of the nodes, ``kinds`` what
    nodes can come, ``bill`` what the sweep has cost. It was last changed ``at`` seconds of the sweep's clock.
    """

    policy: str
    decisions: str
    progress: Mapping[TrialId, Progress] = field(default_factory=dict)
    reasons: Mapping[TrialId, str] = field(default_factory=dict)
    points: Mapping[TrialId, Point] = field(default_factory=dict)
    at: float = 0.0
    supply: Supply = field(default_factory=Supply)
    kinds: KnownKinds = field(default_factory=KnownKinds)
    bill: Bill = field(default_factory=Bill)


_MEMORY = TypeAdapter(Memory)


@dataclass(frozen=True, slots=True)
class Tick:
    """What one look came to.

    ``wake_at`` is when the policy wants to be asked again, in seconds of the sweep's clock; None if only a change needs
    it. ``refused`` tells that something it wanted was not done, and may be let through later.
    """

    wake_at: float | None
    refused: bool


class Engine(Generic[S]):
    """Drives one policy over one sweep.

    Every tick rebuilds its view from the world and the metrics; what it remembers is saved before
    anything is acted upon, so that a controller killed at any instant continues where it stood. ``search`` finds the
    hyperparameters of trials that come without, ``explore`` those of clones; ``requests`` tells what owners ask of
    their trials, ``earlier`` what was learnt before the sweep began.
    """

    def __init__(  # noqa: PLR0913 - its ports, each named
        self,
        policy: Policy[S],
        world: World,
        source: MetricSource,
        store: StateStore,
        logs: Sequence[ActionLog] = (),
        observers: Sequence[Observer] = (),
        *,
        search: Search | None = None,
        requests: Requests | None = None,
        earlier: Callable[[], Earlier] = lambda: NOTHING_EARLIER,
        explore: Explore | None = None,
    ) -> None:
        self._policy = policy
        self._world = world
        self._source = source
        self._store = store
        self._search = search
        self._requests = requests
        self._earlier = earlier
        self._explore = explore
        self._logs = logs
        self._observers = observers
        memory, self._state = self._restore()
        self._reasons, self._points = dict(memory.reasons), dict(memory.points)
        self._sight, self._supply, self._kinds = Sight(memory.progress), memory.supply, memory.kinds
        self._nodes_before: frozenset[NodeName] | None = None
        self.bill = memory.bill
        """What the sweep has cost so far, as far as prices are known."""
        self.saved_at = memory.at if math.isfinite(memory.at) else 0.0
        """When what was restored had last changed, in seconds of the sweep's clock; 0 where nothing was."""
        self._dumped: tuple[tuple[object, ...], str] = (), ""
        self._now = self.saved_at

    def tick(self, now: float) -> Tick:
        """Look, decide and act once, at ``now`` seconds of the sweep's clock."""
        # 1. Look: join what the world shows of trials and nodes with what their metrics say.
        self._now, snapshot = now, self._snapshot(now)
        # 2. Decide: ask the policy, with all that stands around it. Nothing happens yet.
        decision = self._policy.decide(snapshot, self._state)
        # 3. Save, before anything is done: a controller that follows a killed one knows what was wanted.
        self._state = decision.state
        self._save(urgent=bool(decision.proposals))
        # 4. Record what a guard held back: the world is never asked for it.
        for proposal, objection in decision.vetoed:
            self._record(now, proposal, Outcome(OutcomeKind.VETOED, objection))
        # 5. Check each proposal against the world as it is by now, and act.
        outcomes = [self._act(proposal, snapshot) for proposal in decision.proposals]
        # 6. Show the tick to whatever watches: MLflow's tags, the timeline, forecasts, a display.
        assessments = with_goals_told(snapshot, decision.assessments)
        for observer in self._observers:
            observer.observe(snapshot, assessments, self._reasons)
        # 7. Tell the driver when to come back.
        return Tick(decision.wake_at, refused=bool(decision.vetoed) or not all(outcome.done for outcome in outcomes))

    def _snapshot(self, now: float) -> Snapshot:
        samples = self._source.poll()
        trials = self._sight.look(self._world.trials(), samples)
        unended = self._sight.unended
        asks = self._requests.asked() if self._requests is not None else {}
        # Most sweeps are left alone: thousands of trials are not asked for their names then.
        asked = (
            {trial.id: asks[name] for trial in unended if (name := self._world.short(trial.id)) in asks} if asks else {}
        )
        nodes = self._world.nodes()
        self._supply = supply_after(now, unended, nodes, self._supply)
        self.bill = bill_after(now, unended, nodes, self.bill)
        told = self._world.kinds()
        came, self._nodes_before = came_since(nodes, self._nodes_before)
        self._kinds = kinds_after(now, unended, came, told, self._kinds)
        kinds, let_go = believed_kinds(told, self._kinds, now), self._kinds.let_go
        supplied = with_supply(nodes, self._supply)
        return Snapshot.in_order(
            now,
            trials,
            unended,
            supplied,
            asked,
            kinds=kinds,
            let_go=let_go,
            spent=self.bill.spent,
            earlier=self._earlier(),
        )

    def _act(self, proposal: Proposal, seen: Snapshot) -> Outcome:
        if changed := self._changed_since(proposal.action, seen.named):
            outcome = Outcome(OutcomeKind.CHANGED, changed)
        else:
            try:
                proposal = self._with_clone(proposal, seen)
                outcome = self._world.apply(self._with_point(proposal.action, seen))
            except SearchPending as error:
                outcome = Outcome(OutcomeKind.BUSY, str(error))
            except SearchError as error:
                outcome = refused(str(error))
        self._record(seen.now, proposal, outcome)
        if outcome.done:
            self._reasons[proposal.action.trial] = proposal.reason
            if seen.kinds and isinstance(proposal.action, Place) and not proposal.action.nodes:
                self._kinds = self._kinds.with_let_go(proposal.action.trial, seen.now)
        return outcome

    def _with_point(self, action: Action, seen: Snapshot) -> Action:
        """Return ``action`` with the hyperparameters of a trial that starts without any."""
        trial = seen.named[action.trial]
        if not isinstance(action, Place) or not trial.search or trial.parameters:
            return action
        if trial.id not in self._points:
            if self._search is None:
                message = "nobody searches here"
                raise SearchError(message)
            # Kept even if the world does not place it now: the search counts on it.
            self._points[trial.id] = self._search.ask(trial, seen, self._points)
        return replace(action, point=self._points[trial.id])

    def _with_clone(self, proposal: Proposal, seen: Snapshot) -> Proposal:
        """Return ``proposal`` with the hyperparameters of the clone where it asks for one."""
        action = proposal.action
        if not isinstance(action, Clone):
            return proposal
        if self._explore is None:
            message = "nobody changes hyperparameters here"
            raise SearchError(message)
        point = self._explore(seen.named[action.trial], seen.named[action.parent], action)
        return replace(proposal, action=replace(action, point=point))

    def _record(self, now: float, proposal: Proposal, outcome: Outcome) -> None:
        for log in self._logs:
            log.acted(now, proposal.action, proposal.reason, outcome)

    def _changed_since(self, action: Action, seen: Mapping[TrialId, Trial]) -> str | None:
        """Return what has changed since the policy looked and speaks against ``action``; None if it still fits."""
        before, after = seen.get(action.trial), self._world.trial(action.trial)
        if before is None or after is None:
            return "the trial is gone"
        if (before.phase, before.nodes, before.attempt) != (after.phase, after.nodes, after.attempt):
            return "the trial has changed since the policy looked at it"
        match action:
            case Migrate(nodes=nodes) | Place(nodes=nodes):
                places = {name: self._world.node(name) for name in nodes}
                unready = [name for name, place in places.items() if place is None or not place.ready]
                return f"node {unready[0]} is not ready" if unready else why_no_gang(action, after)
            case Clone(parent=name):
                parent = self._world.trial(name)
                return None if parent is not None and name in seen else f"there is no trial {name}"
            case Resize() | Suspend() | Stop():
                return None
            case _:
                assert_never(action)

    def _save(self, *, urgent: bool) -> None:
        now, state, progress = self._now, self._state, dict(self._sight.progress)
        reasons, points, bill = dict(self._reasons), dict(self._points), self.bill
        supply, kinds = self._supply, self._kinds

        def dump() -> str:
            of, text = self._dumped
            if of != (state, progress, reasons, points, kinds):
                decisions = dump_state(self._policy, state)
                memory = Memory(self._policy.name, decisions, progress, reasons, points, now, supply, kinds, bill)
                text = _MEMORY.dump_json(memory).decode()
                self._dumped = (state, progress, reasons, points, kinds), text
            return text

        self._store.save(dump, urgent=urgent)

    def _restore(self) -> tuple[Memory, S]:
        """Return what was saved last, and the policy's state from it."""
        text, state = self._store.load(), self._policy.initial()
        nothing = Memory(self._policy.name, "")
        try:
            memory = nothing if text is None else _MEMORY.validate_json(text)
        except ValidationError:
            # Progress is read again from the metrics; a policy that starts over is slow, never wrong.
            memory = nothing
        if memory.decisions and memory.policy != self._policy.name:
            state = state_after_another(self._policy, memory.decisions)
        elif memory.decisions:
            with suppress(PolicyStateError):
                state = load_state(self._policy, memory.decisions)
        return memory, state
