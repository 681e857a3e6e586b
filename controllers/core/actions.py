"""What policies answer: actions on trials, the reasons for them, and what is thought of each trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, get_args

from controllers.core.model import Category, NodeName, Point, Snapshot, Trial, TrialId

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Resize:
    """Give each of the trial's workers ``cpu`` cores from now on, in place."""

    trial: TrialId
    cpu: float


@dataclass(frozen=True, slots=True)
class Migrate:
    """Checkpoint the trial, end its attempt, and go on with the next one on ``node``.

    For a gang ``nodes`` has a node for each worker of the next attempt, by rank: as many workers as it has nodes from
    then on, whether it moves, grows or shrinks. It ends and goes on as a whole.

    Raises:
        ValueError: ``nodes`` does not begin with ``node``.
    """

    trial: TrialId
    node: NodeName
    nodes: tuple[NodeName, ...] = ()

    def __post_init__(self) -> None:
        _check_first(self.node, self.nodes)


@dataclass(frozen=True, slots=True)
class Place:
    """Let a trial that waits for a place start or go on, on ``node`` or where the default scheduler wants it (None).

    ``point`` are the hyperparameters that a search found for it. The engine adds them; policies leave them empty.
    For a gang ``nodes`` has a node for each worker, by rank: as many workers as it has nodes from then on, all admitted
    or none. Without ``nodes`` a gang keeps as many workers as it has, all on ``node``, or where the scheduler wants
    each.

    Raises:
        ValueError: ``nodes`` does not begin with ``node``.
    """

    trial: TrialId
    node: NodeName | None = None
    point: Point = ()
    nodes: tuple[NodeName, ...] = ()

    def __post_init__(self) -> None:
        _check_first(self.node, self.nodes)


@dataclass(frozen=True, slots=True)
class Suspend:
    """Checkpoint the trial and end its attempt; the next one holds nothing and waits for a ``Place``."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class Stop:
    """End the trial for good as a success that was cut short, with a checkpoint where it runs.

    ``why`` is kept with the trial: in words for a person.
    """

    trial: TrialId
    why: str


def _check_first(node: NodeName | None, nodes: tuple[NodeName, ...]) -> None:
    if nodes and nodes[0] != node:
        message = f"rank 0 of a gang goes to its first node {nodes[0]!r}, not to {node!r}"
        raise ValueError(message)


def nodes_of(action: Migrate | Place, trial: Trial) -> tuple[NodeName, ...]:
    """Return the node of each worker of the attempt that ``action`` leads to; empty where a scheduler chooses them."""
    if action.nodes or action.node is None:
        return action.nodes
    return (action.node,) * trial.workers


def why_no_gang(action: Migrate | Place, trial: Trial) -> str:
    """Return why ``trial`` cannot have as many workers as ``action`` has nodes; empty where it can."""
    least, most, asked = trial.min_workers, max(trial.max_workers, trial.workers), len(action.nodes)
    if asked and not least <= asked <= most:
        return f"{asked} workers are asked for, and it has from {least} to {most}"
    return ""


Action = Resize | Migrate | Place | Suspend | Stop
ACTION_KINDS: Final[tuple[type[Action], ...]] = get_args(Action)
"""Every kind of action, for code that must know them all."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action and why, in words for a person."""

    action: Action
    reason: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a policy thinks of a trial: shown to people, never read back.

    ``category`` is None under a policy that sorts trials into none; ``outlook`` is in words what it foresees, to which
    the engine adds what became of the trial's goals.
    """

    category: Category | None = None
    growth: float | None = None
    outlook: str = ""


@dataclass(frozen=True, slots=True)
class Decision(Generic[S]):
    """What a policy wants: actions in order, the state to go on with, and when to be asked again.

    ``wake_at`` is None where only a change in the cluster needs a new decision. ``vetoed`` holds what
    was wanted but not let through, each with the reason against it. ``narrowed`` is the snapshot as the policies behind
    this one in a stack shall see it, None where they see all.
    """

    state: S
    proposals: tuple[Proposal, ...] = ()
    wake_at: float | None = None
    assessments: Mapping[TrialId, Assessment] = field(default_factory=dict)
    vetoed: tuple[tuple[Proposal, str], ...] = ()
    narrowed: Snapshot | None = None
