"""What policies answer: actions on trials, the reasons for them, and what is thought of each trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Self, TypeVar, assert_never, get_args

from controllers.core.model import Category, NodeName, Point, Snapshot, Trial, TrialId

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Resize:
    """Give each of the trial's workers ``cpu`` cores from now on, in place."""

    trial: TrialId
    cpu: float


@dataclass(frozen=True, slots=True)
class Migrate:
    """Checkpoint the trial, end its attempt, and go on with the next one on ``nodes``.

    They are a node for each worker of the next attempt, by rank: a trial of one worker has one. A gang has as many
    workers as nodes from then on, whether it moves, grows or shrinks. It ends and goes on as a whole.

    Raises:
        ValueError: there are no ``nodes``.
    """

    trial: TrialId
    nodes: tuple[NodeName, ...]

    def __post_init__(self) -> None:
        if not self.nodes:
            message = f"a move of {self.trial!r} leads to no node"
            raise ValueError(message)

    @classmethod
    def to(cls, node: NodeName, trial: Trial) -> Self:
        """Return the move of all workers of ``trial`` to ``node``."""
        return cls(trial.id, (node,) * trial.workers)

    @property
    def node(self) -> NodeName:
        """Node of the first worker."""
        return self.nodes[0]


@dataclass(frozen=True, slots=True)
class Place:
    """Let a trial that waits for a place start or go on, on ``nodes`` or, without any, where the scheduler wants it.

    They are a node for each worker, by rank: a trial of one worker has one. A gang has as many workers as nodes from
    then on, all admitted or none; without nodes it keeps as many as it has. ``near`` tells that a policy names a gang's
    first node only: its guards find nodes near it for the other workers.
    ``point`` are the hyperparameters that a search found for it. The engine adds them; policies leave them empty.
    """

    trial: TrialId
    nodes: tuple[NodeName, ...] = ()
    point: Point = ()
    near: bool = False

    @classmethod
    def on(cls, node: NodeName, trial: Trial) -> Self:
        """Return the place of ``trial`` on ``node``; the first worker of a gang goes there, and the others near it."""
        return cls(trial.id, (node,), near=trial.gang)

    @property
    def node(self) -> NodeName | None:
        """Node of the first worker, None where the scheduler chooses it."""
        return self.nodes[0] if self.nodes else None


@dataclass(frozen=True, slots=True)
class Suspend:
    """Checkpoint the trial and end its attempt; the next one holds nothing and waits for a ``Place``."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class Stop:
    """End the trial for good as a success that was cut short, with a checkpoint where it runs.

    One that waits, for a place or for room, never starts. ``why`` is kept with the trial: in words for a person.
    """

    trial: TrialId
    why: str


@dataclass(frozen=True, slots=True)
class Exploration:
    """How the hyperparameters of a clone differ from its parent's.

    Each number is multiplied by one of ``factors``, or else, with the probability ``resample``, drawn from its whole
    range. ``names`` are those that change, all real numbers where it is empty. The same ``seed`` gives the same values.
    """

    factors: tuple[float, ...] = ()
    resample: float = 0.0
    names: tuple[str, ...] = ()
    seed: str = ""


@dataclass(frozen=True, slots=True)
class Clone:
    """Let the next attempt of a suspended trial go on from ``parent``'s newest checkpoint, with other hyperparameters.

    The trial waits on for a ``Place``. Its own checkpoints are lost, its history stays. ``point`` are all its
    hyperparameters from then on: ``parent``'s, changed by ``explore``. The engine adds them; policies leave them empty.
    """

    trial: TrialId
    parent: TrialId
    explore: Exploration = Exploration()
    point: Point = ()


def why_no_gang(action: Migrate | Place, trial: Trial) -> str | None:
    """Return why ``trial`` cannot have as many workers as ``action`` has nodes; None where it can."""
    least, most, asked = trial.min_workers, max(trial.max_workers, trial.workers), len(action.nodes)
    if asked and not least <= asked <= most:
        return f"{asked} workers are asked for, and it has from {least} to {most}"
    return None


Action = Resize | Migrate | Place | Suspend | Stop | Clone
ACTION_KINDS: Final[tuple[type[Action], ...]] = get_args(Action)
"""Every kind of action, for code that must know them all."""


def written(action: Action) -> dict[str, Any]:
    """Return ``action`` as files and logs have it: ``node`` is the first worker's, ``nodes`` those of several."""
    match action:
        case Resize(trial, cpu):
            return {"trial": trial, "cpu": cpu}
        case Migrate(trial, nodes):
            return {"trial": trial, "node": action.node, "nodes": _of_several(nodes)}
        case Place(trial, nodes, point):
            return {"trial": trial, "node": action.node, "point": point, "nodes": _of_several(nodes)}
        case Suspend(trial):
            return {"trial": trial}
        case Stop(trial, why):
            return {"trial": trial, "why": why}
        case Clone(trial, parent, point=point):
            return {"trial": trial, "parent": parent, "point": point}
        case _:
            assert_never(action)


def _of_several(nodes: tuple[NodeName, ...]) -> tuple[NodeName, ...]:
    return nodes if len(nodes) > 1 else ()


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
