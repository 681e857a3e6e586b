"""What the arbiter answers: each sweep's part of the cluster, and why. Frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controllers.core.model import NodeName, TrialId
from controllers.policies.arbiter.demands import NOTHING, Amount

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Part:
    """What one sweep may use.

    Attributes:
        has: What its trials hold now.
        entitled: What its trials may hold, by what their authors asked for, and its part of the cores beyond that.
        running: How many of its trials are on nodes.
        waiting: How many wait.
        starts: Those of them for which there is room by this.
        held_back: Those that its policy must not start, whatever room it sees.
        gives_back: Trials to suspend, so that others get their parts.
        claims: What of each node's free room is meant for any sweep, and
        own: what of that is meant for this one.
        moves: How many of its trials may be on the move at once.
        new_nodes: How many nodes of each kind may come for it, where the number of those is bounded.
        asks: How many of its trials may wait at kube-scheduler without a node, where others share the cluster: the next
            room that is free anywhere is theirs. None where there is no bound.
        waits_since: Since when it has had nothing at all, though trials of it wait; None where it has.
        reason: Why it is so, for a person.
    """

    has: Amount = NOTHING
    entitled: Amount = NOTHING
    running: int = 0
    waiting: int = 0
    starts: frozenset[TrialId] = frozenset()
    held_back: frozenset[TrialId] = frozenset()
    gives_back: tuple[TrialId, ...] = ()
    claims: Mapping[NodeName, Amount] = field(default_factory=dict)
    own: Mapping[NodeName, Amount] = field(default_factory=dict)
    moves: int = 1
    new_nodes: Mapping[str, int] = field(default_factory=dict)
    asks: int | None = None
    waits_since: float | None = None
    reason: str = ""

    def meant_for_others(self, node: NodeName) -> Amount:
        """Return what of a node's free room is meant for other sweeps."""
        claimed = self.claims.get(node)
        return NOTHING if claimed is None else (claimed - self.own.get(node, NOTHING)).positive()


@dataclass(frozen=True, slots=True)
class Ruling(Generic[S]):
    """Each sweep's part by its name, and the arbiter's state to go on with."""

    parts: Mapping[str, Part]
    state: S
