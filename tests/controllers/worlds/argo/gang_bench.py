"""What tests of gangs do with a bench: put a gang there, act on it, and read what became of its pods."""

from controllers.core.actions import Migrate, Place
from controllers.core.model import NodeName, TrialId
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.gang_objects import TRIAL, gang_workflow, name_of, worker
from tests.controllers.worlds.argo.objects import NAMESPACE, WORKFLOW, Json

G = TrialId(TRIAL)
N1, N2 = NodeName("n1"), NodeName("n2")
ASK = "/var/run/argo/argoexec"
PLACE, MOVE, REST = "hera-specon.io/place", "hera-specon.io/move-to", "hera-specon.io/rest"


def to(*nodes: str) -> Migrate:
    return Migrate(G, tuple(NodeName(name) for name in nodes))


def at(*nodes: str) -> Place:
    return Place(G, tuple(NodeName(name) for name in nodes))


def running(bench: Bench, *nodes: str, attempt: int = 0, **changes: object) -> None:
    """Put the pods of a gang that runs on ``nodes``, and Argo's record of it."""
    size, plan = len(nodes), changes.pop("gang", None)
    before: list[list[tuple[str, str | None]]] = [[("n1", "75")]] * attempt
    workflow = gang_workflow(*before, [(name, None) for name in nodes], gang=str(plan or f"{size},1"))
    bench.put("workflows", workflow)
    for rank, name in enumerate(nodes):
        bench.put("pods", worker(rank, attempt, on=name, size=size, **changes))


def stored(bench: Bench, rank: int, attempt: int = 0) -> Json | None:
    return bench.fake.store.objects["pods"].get(f"{NAMESPACE}/{name_of(rank, attempt)}")


def notes(bench: Bench, rank: int = 0, attempt: int = 0) -> dict[str, str]:
    return dict((stored(bench, rank, attempt) or {})["metadata"]["annotations"])


def plan(bench: Bench) -> tuple[str, str]:
    """The plan on the workflow: size of each attempt, and which were asked to leave."""
    found = bench.fake.store.objects["workflows"][f"{NAMESPACE}/{WORKFLOW}"]["metadata"]["annotations"]
    return found.get("hera-specon.io/gang-sweep-g", ""), found.get("hera-specon.io/left-sweep-g", "")


def gates(bench: Bench, attempt: int, workers: int) -> list[bool]:
    return [bool((stored(bench, rank, attempt) or {})["spec"].get("schedulingGates")) for rank in range(workers)]


def chosen(bench: Bench, attempt: int, workers: int) -> list[str | None]:
    found = ((stored(bench, rank, attempt) or {})["spec"] for rank in range(workers))
    return [(spec.get("nodeSelector") or {}).get("kubernetes.io/hostname") for spec in found]


def start(bench: Bench, attempt: int, workers: int) -> None:
    """Let the pods whose gates were opened run where they were sent."""
    for rank in range(workers):
        written = notes(bench, rank, attempt)
        host = written.get("hera-specon.io/placed-on", "n1")
        bench.put("pods", worker(rank, attempt, on=host, size=workers, notes=written))
