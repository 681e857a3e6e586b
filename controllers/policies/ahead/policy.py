"""Ahead: place, share and move by the work that each trial has left. Ours; no published system.

The hooks report steps done, steps in all and CPU seconds. So the work that a trial has left is known from its first
reports on, with a small error (``kit.work_left``), and with it what the trials of each node come to (``forecast``).
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Final

from pydantic import Field

from controllers.core.actions import Action, Assessment, Decision, Migrate, Place, Proposal, Resize
from controllers.core.model import NodeName, Snapshot, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import usable
from controllers.policies.ahead.gathering import gather_trials
from controllers.policies.ahead.moving import choose_moves, choose_moves_to_idle_nodes, try_elsewhere
from controllers.policies.ahead.placing import place_trials
from controllers.policies.ahead.planning import Weights, WorkPlan
from controllers.policies.ahead.sharing import Sharing
from controllers.policies.ahead.watchdog import Watch, WatchScene, Work, keep_watch
from controllers.policies.kit.arrivals import arriving_until, with_submissions
from controllers.policies.kit.asked_moves import AskedMoves, with_destinations
from controllers.policies.kit.capacity import reconcile
from controllers.policies.kit.measured_trials import MeasuredTrial
from controllers.policies.kit.places import still_starting, with_places
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter
from controllers.policies.kit.shares import shared_nodes, shrinks_first
from controllers.policies.kit.work_left import (
    Estimate,
    SweepMeasurements,
    device_speeds_of,
    doubt,
    estimate_work,
    measure_sweep,
    scaling_of,
    work_done,
    work_seen,
)

STILL_TO_COME: Final = 0.5
"""While trials arrive, this many times as much work is expected to come as has come so far."""
MOST_MOVES: Final = 4
MOST_TRIES: Final = 2
"""Moves of a trial by which it is tried whether its node is the reason that it uses few cores."""
MOST_PLACED: Final = 1_000
"""Trials placed in one decision, so that none takes long: those that are left come next, as places change the world."""
GIVEN_COUNTS: Final = 2
"""How many measured moves ``move_cost`` counts as much as."""
GUESSED: Final = "its length is not known yet: estimated by {}"


@dataclass(frozen=True, slots=True)
class AheadState:
    """What was measured, where trials were placed that have yet to start, moves, submissions, and the next look."""

    measured: SweepMeasurements = field(default_factory=SweepMeasurements)
    starting: Mapping[TrialId, NodeName] = field(default_factory=dict)
    moves: AskedMoves = field(default_factory=AskedMoves)
    submitted: tuple[float, ...] = ()
    due_at: float = 0.0
    watch: Watch = field(default_factory=Watch)


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look at a sweep measures, before anything is decided."""

    snapshot: Snapshot
    known: SweepMeasurements
    """All that was measured by now."""
    estimates: Mapping[TrialId, Estimate]
    """The work that each trial has left, of those that have not ended."""
    weights: Weights
    arrives_until: float
    """Until when more trials are expected, in seconds of the sweep's clock."""
    arriving: bool
    """More trials are expected now."""
    due: bool
    """A look for moves is due."""
    fresh: frozenset[TrialId]
    """The trials whose newest report is recent enough to act on."""


class Ahead(PolicySettings):
    """Brings the sweep's end near its lower bound, and within that lets the shortest trials go first.

    **Placement.** A first attempt starts on the node where it costs all trials the least: the sum of their completion
    times, and an end of the sweep that is late or uneven. While more trials arrive, only the completions count. Where
    more wait than fit, the shortest start first, and the longest early enough that the sweep does not wait for them.

    **Shares.** On each node the trials stand in line: first new ones, until their first report; then by the work that
    is left, least first. Each gets as much as it can use. A trial that would end after all others and so end the sweep
    keeps what it needs to end in time, if its node is late. Where speed grows more slowly
    than cores (measured), the parts are more even. Everybody keeps a floor.

    **Moves.** At each interval, the best single move as long as one saves all trials twice what it costs the one that
    moves, but never of a trial that is nearly done. Where nodes can go, and no trial waits or is expected, trials
    gather on cores that others leave unused, so that an emptied node goes.
    """

    name: ClassVar[str] = "ahead"
    summary: ClassVar[str] = "looks ahead by the work each trial has left: the shortest first, the sweep's end in sight"
    source: ClassVar[str] = "ours"
    state_type: ClassVar[type[AheadState]] = AheadState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate})
    placement: ClassVar[str] = "where the trial costs all trials the least, by the work that is left"
    shares: ClassVar[str] = "all it can use to the trial with the least left, and enough to those that would end last"
    moves: ClassVar[str] = "those that save all trials twice what they cost"
    most_moves: ClassVar[int | None] = MOST_MOVES
    shortest_first: ClassVar[bool] = True

    interval: float = Field(default=10.0, gt=0, description="seconds between two looks for moves")
    floor: float = Field(default=0.05, ge=0, lt=1, description="part of a node that all its trials share evenly")
    move_cost: float = Field(
        default=5.0, ge=0, description="least seconds that a move takes, until those of the sweep tell"
    )
    end_weight: float = Field(default=1.0, ge=0, description="weight of the sweep's end beside the mean completion")
    critical: float = Field(
        default=0.95,
        gt=0,
        description="part of the time to the sweep's earliest end that makes a trial one of the last",
    )
    probe: float = Field(default=60.0, ge=0, description="seconds for which a new trial goes ahead to make a report")
    stale_after: StaleAfter = 6.0
    min_change: MinChange = 0.05
    min_cpu: MinCpu = 0.01

    def decide(self, snapshot: Snapshot, state: AheadState) -> Decision[AheadState]:
        """Measure, place what waits, look for moves where that is due, and share out."""
        # 1. Measure what work each trial has left, and whether more trials are to come.
        submitted = with_submissions(state.submitted, snapshot)
        look = self._look(snapshot, state, arriving_until(submitted))
        moves = state.moves.answered(snapshot)
        starting = still_starting(snapshot, state.starting)
        plan = WorkPlan(with_destinations(snapshot, moves.asked), look.estimates, starting, look.weights)
        # 2. Place what waits. From here on the plan counts each choice that was made before.
        placing = list(islice(place_trials(plan), MOST_PLACED))
        # 3. Compare the sweep with what the default scheduler would have come to.
        watch = self._watched(look, plan, state.watch)
        # 4. Choose moves, where a look for them is due. A sweep that is behind only tries idle nodes.
        movable = [t.id for t in snapshot.unended if look.due and t.id in look.fresh and moves.allows(t, MOST_MOVES)]
        if watch.fallen_back:
            starting = with_places(starting, placing)
            doubting = WorkPlan(plan.snapshot, doubt(look.estimates), starting, look.weights)
            moving = _moves_in_doubt(doubting, look, moves, movable)
        else:
            moving = _moves(plan, movable, gathering=not look.arriving)
        # 5. Share each node out again where a report or the node itself has changed.
        resizes = self._resizes(look, plan, even=watch.fallen_back)
        # 6. Keep the actions that go together, and remember what was asked for.
        kept, vetoed = reconcile((*placing, *moving, *shrinks_first(resizes, snapshot)), snapshot)
        for proposal in kept:
            if isinstance(proposal.action, Migrate):
                moves = moves.with_asked(look.estimates[proposal.action.trial].trial, proposal.action.node)
        due_at = snapshot.now + self.interval if look.due else state.due_at
        return Decision(
            AheadState(look.known, with_places(starting, kept), moves, submitted, due_at, watch),
            kept,
            self._wake_at(snapshot, look.known, due_at, look.arrives_until),
            _guesses_told(look.estimates),
            vetoed,
        )

    def _look(self, snapshot: Snapshot, state: AheadState, arrives_until: float) -> _Look:
        """Return what ``snapshot`` and what was measured before tell of the work that is left."""
        known = measure_sweep(snapshot, state.measured)
        scaling = scaling_of(known)
        arriving = snapshot.now < arrives_until - CLOCK_SLACK
        end_weight = 0.0 if arriving else self.end_weight
        devices = device_speeds_of(known, snapshot)
        # What is old says little of where a trial stands by now, so it moves no trial and changes no share.
        oldest = self.stale_after * self.interval
        return _Look(
            snapshot=snapshot,
            known=known,
            estimates=estimate_work(snapshot, known, scaling.power),
            weights=Weights(scaling.power, scaling.contention, end_weight, self._move_cost(known), devices),
            arrives_until=arrives_until,
            arriving=arriving,
            due=snapshot.now >= state.due_at - CLOCK_SLACK,
            fresh=frozenset(t.id for t in snapshot.unended if usable(t.progress, snapshot.now, oldest)),
        )

    def _watched(self, look: _Look, plan: WorkPlan, watch: Watch) -> Watch:
        """Return ``watch`` after a look at how the sweep stands beside what the default scheduler would have come to.

        It is taken where one is due, and where a trial has ended: its time counts, and its name is not kept.
        """
        ended = any(job.trial is not None and job.trial not in look.estimates for job in watch.jobs)
        if not (look.due or ended):
            return watch
        work, ages = {}, [0.0]
        for name, estimate in look.estimates.items():
            done, memo = work_done(estimate.trial, look.known, look.weights.power), look.known.trials[name]
            work[name] = Work(done, estimate.work, max(estimate.most, memo.used), estimate.known)
            if estimate.trial.steady and memo.newest is not None:
                ages.append(min(look.snapshot.now - memo.newest.at, self.stale_after * self.interval))
        start = statistics.median(look.known.starts or (self.move_cost,))
        nodes, weights = plan.nodes_of_trials(), look.weights
        scene = WatchScene(look.snapshot, work, nodes, weights.power, start, weights.move_cost, max(ages))
        return keep_watch(scene, watch)

    def _resizes(self, look: _Look, plan: WorkPlan, *, even: bool) -> list[Proposal]:
        """Return the shares of each node on which a report or the node itself is new; ``even`` ones for all."""
        power, known = look.weights.power, look.known
        expected = STILL_TO_COME * work_seen(known, look.estimates, power) if look.arriving else 0.0
        # One that moved is known by what it told before; it goes ahead until it reports again all the same.
        unheard = {name for name in look.estimates if known.trials[name].newest is None}
        now = look.snapshot.now
        new = frozenset(name for name in unheard if now < known.trials[name].running_since + self.probe - CLOCK_SLACK)
        silent, end = frozenset(unheard) - new, plan.earliest_end(expected)
        sharing = Sharing(look.estimates, power, end, self.critical, self.floor, new, silent, even)
        resizes: list[Proposal] = []
        for name, node in shared_nodes(look.snapshot).items():
            changed = name in known.nodes and known.nodes[name].since == now
            if name in plan.cores and (changed or not look.fresh.isdisjoint(node.names)):
                forecast = plan.forecasts[name]
                resizes += sharing.proposals(node, plan.cores[name], forecast, self.min_change, self.min_cpu)
        return resizes

    def _move_cost(self, known: SweepMeasurements) -> float:
        """Return the seconds that a move is expected to take.

        The sweep's own moves count, and beside them the parameter, or how long its trials take to start if that is
        more.
        """
        given = (max(self.move_cost, statistics.median(known.starts or (0.0,))),) * GIVEN_COUNTS
        return statistics.fmean((*given, *known.moves))

    def _wake_at(
        self, snapshot: Snapshot, known: SweepMeasurements, due_at: float, arriving_until: float
    ) -> float | None:
        """Return when time alone changes something: a look is due, no more trials are expected, or a probe is over."""
        live = [known.trials[trial.id] for trial in snapshot.unended if trial.live]
        probes = [memo.running_since + self.probe for memo in live if memo.newest is None]
        later = [at for at in (arriving_until, *probes) if snapshot.now + CLOCK_SLACK < at < due_at]
        return min((due_at, *later)) if live else None


def _moves(plan: WorkPlan, movable: Sequence[TrialId], *, gathering: bool) -> list[Proposal]:
    """Return the moves that save all trials the most; without any, those by which trials gather so that a node goes."""
    moving = list(choose_moves(plan, movable))
    return moving if moving or not gathering else list(gather_trials(plan, frozenset(movable)))


def _moves_in_doubt(doubting: WorkPlan, look: _Look, moves: AskedMoves, movable: Sequence[TrialId]) -> list[Proposal]:
    """Return the moves of a sweep that is behind: to idle nodes, and tries whether a trial is faster elsewhere."""
    moving = list(choose_moves_to_idle_nodes(doubting, movable))
    untold = [t for t in movable if moves.arrived.get(t, 0) < MOST_TRIES and _untold(look.known.trials[t])]
    return moving + list(try_elsewhere(doubting, untold, {name: one.most for name, one in look.estimates.items()}))


def _guesses_told(estimates: Mapping[TrialId, Estimate]) -> dict[TrialId, Assessment]:
    """Return the outlook of each trial whose length is only estimated."""
    return {
        name: Assessment(outlook=GUESSED.format(estimate.source))
        for name, estimate in estimates.items()
        if not estimate.known
    }


def _untold(memo: MeasuredTrial) -> bool:
    """Whether the reports of a trial say nothing of waiting for a CPU."""
    return memo.newest is not None and memo.newest.waited is None
