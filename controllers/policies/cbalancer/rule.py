"""C-Balancer's rule: which trial leaves a contended node, and where it goes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from controllers.core.model import Migrate, Node, Trial, TrialId
from controllers.policies.cbalancer.profile import Profile
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.single_moves import SingleMoves

MOST_TARGETS = 16
"""Nodes that are looked at for each trial, the least crowded first: on a large cluster there is no need for all."""

Profiles = Mapping[TrialId, Profile]


def slowdown(node: Node, trials: Sequence[Trial], profiles: Profiles) -> float:
    """Return how many times longer ``trials`` take on ``node`` for being together: at least 1."""
    if not trials:
        return 1.0
    wear = sum(profiles.get(trial.id, Profile()).wear for trial in trials) / len(trials)
    return max(1.0, crowding(node, trials, profiles)) * wear


def crowding(node: Node, trials: Sequence[Trial], profiles: Profiles) -> float:
    """Return the sum of the appetites of ``trials`` as a multiple of the cores of ``node``."""
    known = [profiles.get(trial.id, Profile()).appetite for trial in trials]
    return sum(min(node.cpu, node.cpu if appetite is None else appetite) for appetite in known) / node.cpu


def balancing(
    occupancy: Occupancy, profiles: Profiles, moves: SingleMoves, least_gain: float
) -> Iterator[tuple[Migrate, str]]:
    """Yield at most one move from each node, the most slowed one first, with its reason; ``occupancy`` is kept up."""
    nodes = occupancy.ready()
    slowed = {node.name: slowdown(node, occupancy.on(node.name), profiles) for node in nodes}
    crowded = {node.name: crowding(node, occupancy.on(node.name), profiles) for node in nodes}
    for source in sorted(nodes, key=lambda node: (-slowed[node.name], node.name)):
        targets = nsmallest(MOST_TARGETS, nodes, key=lambda node: (crowded[node.name], node.name))
        best = min(_options(source, targets, occupancy, profiles, moves), default=None, key=lambda option: option.rank)
        if best is None or best.rank[0] > -least_gain:
            continue
        reason = (
            f"contention: {source.name} slows its trials {slowed[source.name]:.2f} times, "
            f"{best.target.name} with this one {best.there:.2f} times"
        )
        occupancy.move(best.trial, best.target.name)
        for node in (source, best.target):
            crowded[node.name] = crowding(node, occupancy.on(node.name), profiles)
        yield Migrate(best.trial.id, best.target.name), reason


@dataclass(frozen=True, slots=True)
class _Option:
    """A possible move: by which part it changes the sum of slowdowns, and the slowdown at its target afterwards."""

    trial: Trial
    target: Node
    change: float
    there: float

    @property
    def rank(self) -> tuple[float, str, str]:
        return self.change, self.trial.id, self.target.name


def _options(
    source: Node, targets: Sequence[Node], occupancy: Occupancy, profiles: Profiles, moves: SingleMoves
) -> Iterator[_Option]:
    here = occupancy.on(source.name)
    movable = [trial for trial in here if moves.allows(trial) and _measured(profiles.get(trial.id))]
    whole = _total(source, here, profiles)
    totals = {node.name: _total(node, occupancy.on(node.name), profiles) for node in (targets if movable else ())}
    for trial in movable:
        left = _total(source, [other for other in here if other.id != trial.id], profiles)
        for node in targets:
            if node.name == source.name or not occupancy.ledger.fits(trial, node.name):
                continue
            there = (*occupancy.on(node.name), trial)
            change = (left + _total(node, there, profiles)) / (whole + totals[node.name]) - 1
            yield _Option(trial, node, change, slowdown(node, there, profiles))


def _measured(profile: Profile | None) -> bool:
    return profile is not None and profile.steps.latest is not None


def _total(node: Node, trials: Sequence[Trial], profiles: Profiles) -> float:
    return slowdown(node, trials, profiles) * len(trials)
