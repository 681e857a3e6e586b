"""Ahead: place, share and move by the work that each trial has left. Ours; no published system.

The hooks report steps done, steps in all and CPU seconds. So the work that a trial has left is known from its first
reports on, with a small error (``kit.work_left``), and with it what the trials of each node come to (``forecast``).
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
        known = measure_sweep(snapshot, state.measured)
        moves = state.moves.answered(snapshot)
        starting = still_starting(snapshot, state.starting)
        submitted = with_submissions(state.submitted, snapshot)
        until = arriving_until(submitted)
        arriving = snapshot.now < until - CLOCK_SLACK
        scaling = scaling_of(known)
        power = scaling.power
        estimates = estimate_work(snapshot, known, power)
        devices = device_speeds_of(known, snapshot)
        end_weight = 0.0 if arriving else self.end_weight
        weights = Weights(power, scaling.contention, end_weight, self._move_cost(known), devices)
        shown = with_destinations(snapshot, moves.asked)
        plan = WorkPlan(shown, estimates, starting, weights)
        placing = list(islice(place_trials(plan), MOST_PLACED))
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        watch = state.watch
        # Also when a trial has ended: its time counts, and its name is not kept.
        if due or any(job.trial is not None and job.trial not in estimates for job in watch.jobs):
            watch = self._keep_watch(snapshot, watch, known, estimates, plan, weights)
        # What is old says little of where a trial stands by now, so it moves no trial and changes no share.
        oldest = self.stale_after * self.interval
        fresh = {trial.id for trial in snapshot.unended if usable(trial.progress, snapshot.now, oldest)}
        movable = [t.id for t in snapshot.unended if due and t.id in fresh and moves.allows(t, MOST_MOVES)]
        if watch.fallen_back:
            starting = with_places(starting, placing)
            doubting = WorkPlan(shown, doubt(estimates), starting, weights)
            moving = list(choose_moves_to_idle_nodes(doubting, movable))
            untold = [t for t in movable if moves.arrived.get(t, 0) < MOST_TRIES and _untold(known.trials[t])]
            moving += try_elsewhere(doubting, untold, {name: estimate.most for name, estimate in estimates.items()})
        else:
            moving = list(choose_moves(plan, movable))
            if not (arriving or moving):
                moving = list(gather_trials(plan, frozenset(movable)))
        expected = STILL_TO_COME * work_seen(known, estimates, power) if arriving else 0.0
        sharing = self._sharing(snapshot.now, known, estimates, power, plan.earliest_end(expected))
        sharing = replace(sharing, even=watch.fallen_back)
        resizes: list[Proposal] = []
        for name, node in shared_nodes(snapshot).items():
            changed = name in known.nodes and known.nodes[name].since == snapshot.now
            if name in plan.cores and (changed or not fresh.isdisjoint(node.names)):
                forecast = plan.forecasts[name]
                resizes += sharing.proposals(node, plan.cores[name], forecast, self.min_change, self.min_cpu)
        kept, vetoed = reconcile((*placing, *moving, *shrinks_first(resizes, snapshot)), snapshot)
        for proposal in kept:
            if isinstance(proposal.action, Migrate):
                moves = moves.with_asked(estimates[proposal.action.trial].trial, proposal.action.node)
        due_at = snapshot.now + self.interval if due else state.due_at
        guessed = {
            name: Assessment(outlook=GUESSED.format(estimate.source))
            for name, estimate in estimates.items()
            if not estimate.known
        }
        return Decision(
            AheadState(known, with_places(starting, kept), moves, submitted, due_at, watch),
            kept,
            self._wake_at(snapshot, known, due_at, until),
            guessed,
            vetoed,
        )

    def _keep_watch(
        self,
        snapshot: Snapshot,
        watch: Watch,
        known: SweepMeasurements,
        estimates: Mapping[TrialId, Estimate],
        plan: WorkPlan,
        weights: Weights,
    ) -> Watch:
        """Return how the sweep stands beside what the default scheduler would have come to."""
        work, ages = {}, [0.0]
        for name, estimate in estimates.items():
            done, memo = work_done(estimate.trial, known, weights.power), known.trials[name]
            work[name] = Work(done, estimate.work, max(estimate.most, memo.used), estimate.known)
            if estimate.trial.steady and memo.newest is not None:
                ages.append(min(snapshot.now - memo.newest.at, self.stale_after * self.interval))
        start = statistics.median(known.starts or (self.move_cost,))
        nodes = plan.nodes_of_trials()
        return keep_watch(WatchScene(snapshot, work, nodes, weights.power, start, weights.move_cost, max(ages)), watch)

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

    def _sharing(
        self, now: float, known: SweepMeasurements, estimates: Mapping[TrialId, Estimate], power: float, end: float
    ) -> Sharing:
        # One that moved is known by what it told before; it goes ahead until it reports again all the same.
        unheard = {name for name in estimates if known.trials[name].newest is None}
        new = frozenset(name for name in unheard if now < known.trials[name].running_since + self.probe - CLOCK_SLACK)
        return Sharing(estimates, power, end, self.critical, self.floor, new, frozenset(unheard) - new)


def _untold(memo: MeasuredTrial) -> bool:
    """Whether the reports of a trial say nothing of waiting for a CPU."""
    return memo.newest is not None and memo.newest.waited is None
