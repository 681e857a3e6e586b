"""Our annotations on the pods of trials. Whatever a pod says of itself is untrusted."""

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.core import labels
from controllers.worlds.argo.definitions import MOST_WORKERS
from controllers.worlds.argo.idling import Idling
from controllers.worlds.argo.untrusted import count, number


@dataclass(frozen=True, slots=True)
class Marks:
    """Our annotations on a trial's pod; see controllers.core.labels for what each means.

    ``move_to`` is the node that rank 0 of a gang moves to, ``move_nodes`` and ``place`` have one for each of its ranks.
    """

    move_to: str = ""
    move_nodes: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    rest: str = ""
    suspended: bool = False
    placed_on: str = ""
    moved_from: str = ""
    moves: int = 0
    suspensions: int = 0
    resizes: int = 0
    idling: Idling | None = None
    base_cpu: float | None = None
    run: str = ""


def read_marks(written: Mapping[str, str], *, of_a_gang: bool) -> Marks:
    """Return the marks among the annotations ``written``; ``of_a_gang`` tells that the pod is a worker of one."""
    move_nodes = _nodes_in(written.get(labels.ANNOTATION_MOVE_TO, ""))
    return Marks(
        move_to=move_nodes[0] if move_nodes else "",
        move_nodes=move_nodes,
        place=_nodes_in(written.get(labels.ANNOTATION_PLACE, "")) if of_a_gang else (),
        rest=written.get(labels.ANNOTATION_REST, "")[:16],
        suspended=bool(written.get(labels.ANNOTATION_SUSPENDED)),
        suspensions=count(written.get(labels.ANNOTATION_SUSPENSIONS, "")),
        placed_on=written.get(labels.ANNOTATION_PLACED_ON, "")[:253],
        moved_from=written.get(labels.ANNOTATION_MOVED_FROM, ""),
        moves=count(written.get(labels.ANNOTATION_MOVES, "")),
        resizes=count(written.get(labels.ANNOTATION_RESIZES, "")),
        idling=Idling.read(written.get(labels.ANNOTATION_IDLING, "")),
        base_cpu=number(written.get(labels.ANNOTATION_BASE_CPU, "")),
        run=written.get(labels.ANNOTATION_RUN, "")[:64],
    )


def _nodes_in(written: str) -> tuple[str, ...]:
    return tuple(name[:253] for name in written.split(",", MOST_WORKERS)[:MOST_WORKERS]) if written else ()
