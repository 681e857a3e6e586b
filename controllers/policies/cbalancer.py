"""C-Balancer: profile how trials contend, and move one where that speeds up the most (Dhumal and Janakiram 2020).

"C-Balancer: A System for Container Profiling and Scheduling", arXiv:2009.08912. Of its profiles and its search for a
placement only the outline is used; the measure of contention and the rule are our own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Migrate, Proposal
from controllers.core.model import Node, NodeName, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.kit.asked_moves import AskedMoves, with_destinations
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.paces import StepMemo, time_steps
from controllers.policies.kit.settings import PolicySettings

BUSY = 0.95
"""Part of a node's cores in use from which on it is taken to hold its trials back."""
LEFT_UNUSED = 0.9
"""A trial that uses less than this part of its fair share is taken to want no more."""
MOST_TARGETS = 16
"""Nodes that are looked at for each trial, the least crowded first: on a large cluster there is no need for all."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One trial: its step times, the cores it can use (None until seen), its least core seconds of a step, its wear."""

    steps: StepMemo = field(default_factory=StepMemo)
    appetite: float | None = None
    least: float | None = None
    wear: float = 1.0


@dataclass(frozen=True, slots=True)
class CBalancerState:
    """Profiles of the trials that have not ended, the moves, and when to look again (seconds)."""

    profiles: Mapping[TrialId, Profile] = field(default_factory=dict)
    moves: AskedMoves = field(default_factory=AskedMoves)
    due_at: float = 0.0


class CBalancer(PolicySettings):
    """Every ``interval`` the trials are profiled, and some leave the most contended nodes, each at most once.

    **Profile.** A trial's appetite: the cores that it uses where nothing holds it back, which is when its node is not
    busy (below 95 %) or it leaves part of its fair share unused; until that was seen, all cores of its node. Its wear:
    core seconds of a step now, as a multiple of the least it was ever measured with.

    **Slowdown** of a node: ``max(1, sum of appetites / cores) x mean wear`` of its trials: how many times longer they
    take for being together.

    **Rule.** From the node of greatest slowdown down: of all its trials and all nodes with room, the move after which
    the trials of both nodes are slowed least in sum, if that takes ``least_gain`` off the sum.
    """

    name: ClassVar[str] = "cbalancer"
    summary: ClassVar[str] = "profiles how trials slow each other down, and moves them to where they do so less"
    source: ClassVar[str] = "Dhumal and Janakiram 2020, arXiv:2009.08912 (outline; measure and rule are ours)"
    state_type: ClassVar[type[CBalancerState]] = CBalancerState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Migrate})
    moves: ClassVar[str] = "from the most slowed node to where the sum of slowdowns becomes least"
    most_moves: ClassVar[int | None] = 1

    interval: float = Field(default=30.0, gt=0, description="seconds between two profiles of the trials")
    stale_after: float = Field(
        default=2.0, ge=1, description="age in intervals beyond which a report profiles nothing: it came late"
    )
    least_gain: float = Field(
        default=0.1, gt=0, lt=1, description="part of two nodes' slowdown that a move between them must take off"
    )

    def decide(self, snapshot: Snapshot, state: CBalancerState) -> Decision[CBalancerState]:
        """Profile and balance where that is due."""
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        moves = state.moves.answered(snapshot)
        left = {trial.id for trial in snapshot.unended}
        profiles = {name: profile for name, profile in state.profiles.items() if name in left}
        proposals = []
        if due:
            profiles = profile_trials(snapshot, profiles, self.stale_after * self.interval)
            occupancy = Occupancy.of(with_destinations(snapshot, moves.asked))
            for move, reason in balancing(occupancy, profiles, moves, self.least_gain):
                proposals.append(Proposal(move, reason))
                moves = moves.with_asked(occupancy.capacity.trials[move.trial], move.node)
        due_at = snapshot.now + self.interval if due else state.due_at
        live = any(trial.live for trial in snapshot.unended)
        return Decision(CBalancerState(profiles, moves, due_at), tuple(proposals), due_at if live else None)


def profile_trials(
    snapshot: Snapshot, profiles: Mapping[TrialId, Profile], stale_after: float
) -> dict[TrialId, Profile]:
    """Return the profiles of the trials that have not ended, after a look at their newest reports.

    Args:
        snapshot: What is there.
        profiles: As this returned them last.
        stale_after: Seconds after which a report came too late to measure by.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    fair = fair_cores(snapshot, nodes)
    trials = {trial.id: trial for trial in snapshot.unended}
    memos = time_steps(snapshot, {name: profile.steps for name, profile in profiles.items()}, stale_after)
    updated: dict[TrialId, Profile] = {}
    for name, memo in memos.items():
        before, node = profiles.get(name, Profile()), trials[name].node
        updated[name] = profile = replace(before, steps=memo)
        if memo.latest is None or memo == before.steps or node is None or node not in nodes:
            continue
        work = memo.latest.core_seconds
        least = work if profile.least is None else min(profile.least, work)
        free = nodes[node].cpu_used < BUSY * nodes[node].cpu or memo.latest.cores < LEFT_UNUSED * fair.get(name, 0.0)
        appetite = memo.latest.cores if free else profile.appetite
        updated[name] = replace(profile, appetite=appetite, least=least, wear=work / least)
    return updated


def fair_cores(snapshot: Snapshot, nodes: Mapping[NodeName, Node]) -> dict[TrialId, float]:
    """Return the cores that each live trial may use while all want more: its node's, in proportion to its request."""
    live = [(trial, trial.node) for trial in snapshot.unended if trial.live and trial.node in nodes]
    requested: dict[NodeName | None, float] = {}
    for trial, node in live:
        requested[node] = requested.get(node, 0.0) + trial.cpu
    return {
        trial.id: nodes[node].cpu * trial.cpu / requested[node]
        for trial, node in live
        if node is not None and requested[node]
    }


def slowdown(node: Node, trials: Sequence[Trial], profiles: Mapping[TrialId, Profile]) -> float:
    """Return how many times longer ``trials`` take on ``node`` for being together: at least 1."""
    if not trials:
        return 1.0
    wear = sum(profiles.get(trial.id, Profile()).wear for trial in trials) / len(trials)
    return max(1.0, crowding(node, trials, profiles)) * wear


def crowding(node: Node, trials: Sequence[Trial], profiles: Mapping[TrialId, Profile]) -> float:
    """Return the sum of the appetites of ``trials`` as a multiple of the cores of ``node``."""
    known = [profiles.get(trial.id, Profile()).appetite for trial in trials]
    return sum(min(node.cpu, node.cpu if appetite is None else appetite) for appetite in known) / node.cpu


def balancing(
    occupancy: Occupancy, profiles: Mapping[TrialId, Profile], moves: AskedMoves, least_gain: float
) -> Iterator[tuple[Migrate, str]]:
    """Yield at most one move from each node, the most slowed one first, with its reason; ``occupancy`` is kept up."""
    nodes = occupancy.ready()
    slowed = {node.name: slowdown(node, occupancy.on(node.name), profiles) for node in nodes}
    crowded = {node.name: crowding(node, occupancy.on(node.name), profiles) for node in nodes}
    for source in sorted(nodes, key=lambda node: (-slowed[node.name], node.name)):
        targets = nsmallest(MOST_TARGETS, nodes, key=lambda node: (crowded[node.name], node.name))
        options = _options(source, targets, occupancy, profiles, moves)
        best = min(options, default=None, key=lambda option: (option.change, option.trial.id, option.target.name))
        if best is None or best.change > -least_gain:
            continue
        reason = (
            f"contention: {source.name} slows its trials {slowed[source.name]:.2f} times, "
            f"{best.target.name} with this one {best.slowdown_there:.2f} times"
        )
        occupancy.move(best.trial, best.target.name)
        for node in (source, best.target):
            crowded[node.name] = crowding(node, occupancy.on(node.name), profiles)
        yield Migrate.to(best.target.name, best.trial), reason


@dataclass(frozen=True, slots=True)
class _Option:
    """A possible move: by which part it changes the sum of slowdowns, and the slowdown at its target afterwards."""

    trial: Trial
    target: Node
    change: float
    slowdown_there: float


def _options(
    source: Node, targets: Sequence[Node], occupancy: Occupancy, profiles: Mapping[TrialId, Profile], moves: AskedMoves
) -> Iterator[_Option]:
    here = occupancy.on(source.name)
    movable = [trial for trial in here if moves.allows(trial) and profiles.get(trial.id, Profile()).steps.latest]
    whole = _total(source, here, profiles)
    totals = {node.name: _total(node, occupancy.on(node.name), profiles) for node in (targets if movable else ())}
    for trial in movable:
        left = _total(source, [other for other in here if other.id != trial.id], profiles)
        for node in targets:
            if node.name == source.name or not occupancy.capacity.fits(trial, node.name):
                continue
            there = (*occupancy.on(node.name), trial)
            change = (left + _total(node, there, profiles)) / (whole + totals[node.name]) - 1
            yield _Option(trial, node, change, slowdown(node, there, profiles))


def _total(node: Node, trials: Sequence[Trial], profiles: Mapping[TrialId, Profile]) -> float:
    return slowdown(node, trials, profiles) * len(trials)
