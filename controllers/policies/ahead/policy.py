"""Ahead: place, share and move by the work that each trial has left. Ours; no published system.

The hooks report steps done, steps in all and CPU seconds. So the work that a trial has left is known from its first
reports on, with a small error (``estimates``), and with it what the trials of each node come to (``forecast``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from pydantic import Field

from controllers.core.model import (
    Action,
    Assessment,
    Decision,
    Migrate,
    NodeName,
    Place,
    Proposal,
    Resize,
    Snapshot,
    TrialId,
)
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import usable
from controllers.policies.ahead.forecast import allocated
from controllers.policies.ahead.planning import Weights, WorkPlan, still_arriving
from controllers.policies.kit.capacity import reconciled
from controllers.policies.kit.first_attempts import still_starting, with_places
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter
from controllers.policies.kit.shares import SharedNode, shared_nodes, shrinks_first
from controllers.policies.kit.single_moves import SingleMoves, with_destinations
from controllers.policies.kit.work_left import Estimate, Measured, estimated, measured, power_of

KEPT_SUBMISSIONS: Final = 16
LATE: Final = 1.02
"""A node is late if its last trial ends later than this many times the sweep's earliest end."""
HEADROOM: Final = 1.1
"""A trial gets this many times the most cores that it was seen to use: it may be able to use a little more."""
LEAST_OF_NODE: Final = 0.02
"""Part of what a node's trials may share by which a request must change at least."""
GUESSED: Final = "its length is not known yet: estimated by {}"


@dataclass(frozen=True, slots=True)
class AheadState:
    """What was measured, where trials were placed that have yet to start, moves, submissions, and the next look."""

    measured: Measured = field(default_factory=Measured)
    starting: Mapping[TrialId, NodeName] = field(default_factory=dict)
    moves: SingleMoves = field(default_factory=SingleMoves)
    submitted: tuple[float, ...] = ()
    due_at: float = 0.0


class Ahead(PolicySettings):
    """Brings the sweep's end near its lower bound, and within that lets the shortest trials go first.

    **Placement.** A first attempt starts on the node where it costs all trials the least: the sum of their completion
    times, and an end of the sweep that is late or uneven. While more trials arrive, only the completions count.

    **Shares.** On each node the trials stand in line: first those that would end after all others and so end the sweep,
    if their node is late and no more trials arrive; then new ones, until their first report; then by the work that is
    left, least first. Each gets as much as it can use. Where speed grows more slowly than cores (measured), the parts
    are more even. Everybody keeps a floor.

    **Moves.** At each interval, the best single move as long as one saves all trials more than it costs the one that
    moves. Each trial moves at most once, and never when it is nearly done.
    """

    name: ClassVar[str] = "ahead"
    summary: ClassVar[str] = "looks ahead by the work each trial has left: the shortest first, the sweep's end in sight"
    source: ClassVar[str] = "ours"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate})
    placement: ClassVar[str] = "where the trial costs all trials the least, by the work that is left"
    shares: ClassVar[str] = "all it can use to the trial with the least left, but first to those that would end last"
    moves: ClassVar[str] = "those that save all trials more than they cost"
    most_moves: ClassVar[int | None] = 1

    interval: float = Field(default=10.0, gt=0, description="seconds between two looks for moves")
    floor: float = Field(default=0.05, ge=0, lt=1, description="part of a node that all its trials share evenly")
    move_cost: float = Field(default=15.0, ge=0, description="seconds for which a trial that moves does not train")
    end_weight: float = Field(default=1.0, ge=0, description="weight of the sweep's end beside the mean completion")
    critical: float = Field(
        default=0.9, gt=0, description="part of the time to the sweep's earliest end that makes a trial one of the last"
    )
    probe: float = Field(default=60.0, ge=0, description="seconds for which a new trial goes ahead to make a report")
    stale_after: StaleAfter = 6.0
    min_change: MinChange = 0.05
    min_cpu: MinCpu = 0.01

    @property
    def state_type(self) -> type[AheadState]:
        """Type of the state."""
        return AheadState

    def initial(self) -> AheadState:
        """Return the state before the first decision."""
        return AheadState()

    def decide(self, snapshot: Snapshot, state: AheadState) -> Decision[AheadState]:
        """Measure, place what waits, share out, and look for moves where that is due."""
        known = measured(snapshot, state.measured)
        moves = state.moves.answered(snapshot)
        starting = still_starting(snapshot, state.starting)
        submitted = tuple(sorted({*state.submitted, *(trial.submitted_at for trial in snapshot.unended)}))
        submitted = submitted[-KEPT_SUBMISSIONS:]
        arriving = still_arriving(snapshot, submitted)
        power = power_of(known)
        estimates = estimated(snapshot, known, power)
        weights = Weights(power, 0.0 if arriving else self.end_weight, self.move_cost, self.critical)
        plan = WorkPlan(with_destinations(snapshot, moves.asked), estimates, starting, weights)
        placing = list(plan.places())
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        # What is old says little of where a trial stands by now, so it moves no trial and changes no share.
        oldest = self.stale_after * self.interval
        fresh = {trial.id for trial in snapshot.unended if usable(trial.progress, snapshot.now, oldest)}
        movable = [trial.id for trial in snapshot.unended if due and trial.id in fresh and moves.allows(trial)]
        moving = list(plan.moves(movable))
        line = _Line(self, snapshot.now, known, estimates, power, None if arriving else plan.earliest_end())
        resizes: list[Proposal] = []
        for name, node in shared_nodes(snapshot).items():
            changed = name in known.nodes and known.nodes[name].since == snapshot.now
            if name in plan.cores and (changed or not fresh.isdisjoint(node.names)):
                forecast = plan.forecasts[name]
                resizes += line.resizes(node, plan.cores[name], forecast.last, forecast.exponent)
        kept, vetoed = reconciled((*placing, *moving, *shrinks_first(resizes, snapshot)), snapshot)
        for proposal in kept:
            if isinstance(proposal.action, Migrate):
                moves = moves.with_asked(estimates[proposal.action.trial].trial, proposal.action.node)
        due_at = snapshot.now + self.interval if due else state.due_at
        guessed = {
            name: Assessment(outlook=GUESSED.format(one.source)) for name, one in estimates.items() if not one.known
        }
        return Decision(
            AheadState(known, with_places(starting, kept), moves, submitted, due_at),
            kept,
            due_at if any(trial.live for trial in snapshot.unended) else None,
            guessed,
            vetoed,
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """Who goes before whom on a node; ``end`` is the sweep's earliest end in seconds, None while trials arrive."""

    policy: Ahead
    now: float
    known: Measured
    estimates: Mapping[TrialId, Estimate]
    power: float
    end: float | None

    def resizes(self, node: SharedNode, cores: float, last: float, exponent: float) -> list[Proposal]:
        """Return the resizes that give each trial of ``node`` its part; ``last`` is when the last of them would end."""
        late = self.end is not None and last > LATE * self.end
        ranks = {name: self._rank(name, cores, late=late) for name in node.names}
        line = sorted(node.names, key=lambda name: ranks[name])
        mosts = {name: HEADROOM * min(self.estimates[name].most, cores) for name in line}
        even = cores / len(line)
        shares = {name: even if ranks[name][0] == _SILENT else self.policy.floor * even for name in line}
        left = cores - sum(shares.values())
        first = [name for name in line if ranks[name][0] < _SHORTEST]
        for name in first:
            more = min(max(0.0, mosts[name] - shares[name]), max(0.0, left))
            shares[name] += more
            left -= more
        rest = [name for name in line if ranks[name][0] == _SHORTEST]
        for name, more in zip(rest, allocated([mosts[name] for name in rest], max(0.0, left), exponent), strict=True):
            shares[name] += more
        total = sum(shares.values())
        if total <= 0 or node.budget <= 0:
            return []
        parts = {name: share / total for name, share in shares.items()}
        found: list[Proposal] = []
        for name, cpu in node.requests(parts, self.policy.min_change, self.policy.min_cpu).items():
            trial = self.estimates[name].trial
            if abs(cpu - trial.cpu) * len(trial.nodes) >= LEAST_OF_NODE * node.budget:
                found.append(Proposal(Resize(name, cpu), self._reason(name, line, ranks[name][0])))
        return found

    def _rank(self, name: TrialId, cores: float, *, late: bool) -> tuple[int, float, TrialId]:
        one, memo = self.estimates[name], self.known.trials[name]
        alone = one.work / min(one.most, cores) ** self.power
        if late and one.known and self.end is not None and alone >= self.policy.critical * self.end:
            return _LAST_TO_END, -alone, name
        if memo.newest is None and not one.known:
            new = self.now - memo.running_since < self.policy.probe
            return (_NEW if new else _SILENT), one.trial.submitted_at, name
        return _SHORTEST, one.work, name

    def _reason(self, name: TrialId, line: list[TrialId], rank: int) -> str:
        why = {
            _LAST_TO_END: "it would end the sweep",
            _NEW: "its first report is awaited",
            _SILENT: "it does not report",
            _SHORTEST: f"{self.estimates[name].work:.0f} core seconds are left",
        }[rank]
        return f"sharing: number {line.index(name) + 1} of {len(line)}, {why}"


_LAST_TO_END, _NEW, _SHORTEST, _SILENT = range(4)
"""Who comes first in a node's line. A silent trial waits for nobody: it has an even part."""
