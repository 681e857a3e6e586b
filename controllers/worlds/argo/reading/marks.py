"""Our annotations on the pods of trials. Whatever a pod says of itself is untrusted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controllers.core import labels
from controllers.worlds.argo.calls.untrusted import count, number
from controllers.worlds.argo.reading.definitions import MOST_WORKERS
from controllers.worlds.argo.reading.idling import NO_IDLING, Idling


@dataclass(frozen=True, slots=True)
class Marks:
    """Our annotations on a trial's pod; see controllers.core.labels for what each means.

    ``move_to`` and ``place`` have a node for each worker, by rank. ``stays`` tells that Karpenter was asked to leave
    its node alone, and ``own_stay`` that its author decided on that.
    """

    move_to: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    rest: str = ""
    leave: str = ""
    suspended: bool = False
    placed_on: str = ""
    moved_from: str = ""
    moves: int = 0
    suspensions: int = 0
    resizes: int = 0
    idling: Idling | None = None
    base_cpu: float | None = None
    run: str = ""
    stays: bool = False
    own_stay: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a trial was moved, suspended and resized so far, and how often it left for nothing.

    They stand on its newest pod, so that they outlive those before.
    """

    moves: int
    suspensions: int
    resizes: int
    idling: Idling

    def annotations(self) -> dict[str, str | None]:
        """Return the annotations that keep them."""
        return {
            labels.ANNOTATION_MOVES: str(self.moves),
            labels.ANNOTATION_SUSPENSIONS: str(self.suspensions),
            labels.ANNOTATION_RESIZES: str(self.resizes),
            **({labels.ANNOTATION_IDLING: str(self.idling)} if self.idling != NO_IDLING else {}),
        }


NO_MOVE: Final[Mapping[str, str | None]] = dict.fromkeys(
    (labels.ANNOTATION_MOVE_TO, labels.ANNOTATION_MOVE_ASKED_AT, labels.ANNOTATION_REST)
)
"""Takes the marks of a move and of a suspension away. That a program was asked stays, since it may have seen that."""


def read_marks(written: Mapping[str, str], *, of_a_gang: bool) -> Marks:
    """Return the marks among the annotations ``written``; ``of_a_gang`` tells that the pod is a worker of one."""
    return Marks(
        move_to=_nodes_in(written.get(labels.ANNOTATION_MOVE_TO, "")),
        place=_nodes_in(written.get(labels.ANNOTATION_PLACE, "")) if of_a_gang else (),
        rest=written.get(labels.ANNOTATION_REST, "")[:16],
        leave=written.get(labels.ANNOTATION_LEAVE, "")[:128],
        suspended=bool(written.get(labels.ANNOTATION_SUSPENDED)),
        suspensions=count(written.get(labels.ANNOTATION_SUSPENSIONS, "")),
        placed_on=written.get(labels.ANNOTATION_PLACED_ON, "")[:253],
        moved_from=written.get(labels.ANNOTATION_MOVED_FROM, ""),
        moves=count(written.get(labels.ANNOTATION_MOVES, "")),
        resizes=count(written.get(labels.ANNOTATION_RESIZES, "")),
        idling=Idling.read(written.get(labels.ANNOTATION_IDLING, "")),
        base_cpu=number(written.get(labels.ANNOTATION_BASE_CPU, "")),
        run=written.get(labels.ANNOTATION_RUN, "")[:64],
        stays=labels.ANNOTATION_STAYS in written,
        own_stay=labels.ANNOTATION_DO_NOT_DISRUPT in written and labels.ANNOTATION_STAYS not in written,
    )


def written_nodes(nodes: Sequence[str]) -> str:
    """Return the nodes of an attempt's workers, by rank, as annotations have them."""
    return ",".join(nodes)


def _nodes_in(written: str) -> tuple[str, ...]:
    return tuple(name[:253] for name in written.split(",", MOST_WORKERS)[:MOST_WORKERS] if name)
