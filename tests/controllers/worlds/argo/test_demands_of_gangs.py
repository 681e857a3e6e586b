"""All workers of a gang go where its author's demands hold, and rank 0 alone is told the gang's run in MLflow."""

from collections.abc import Mapping
from typing import Any

from controllers.core import labels
from controllers.core.actions import Migrate, Place
from controllers.core.model import NodeName, TrialId
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.gang_objects import TRIAL, gang_workflow, name_of, worker
from tests.controllers.worlds.argo.objects import NAMESPACE, Json, node
from tests.controllers.worlds.argo.test_runs_of_pods import told

G = TrialId(TRIAL)
N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))
EAST = {"nodeSelector": {"zone": "east"}}
POOL: Json = {"tolerations": [{"key": "pool", "operator": "Exists"}]}


def put_nodes(bench: Bench) -> None:
    """Have n1 and n3 in the east, and n2 elsewhere. n3 keeps pods away that do not tolerate its taint."""
    for name, taints in (("n1", []), ("n3", [{"key": "pool", "value": "big", "effect": "NoSchedule"}])):
        made = node(name, taints=taints)
        made["metadata"]["labels"]["zone"] = "east"
        bench.put("nodes", made)


def put_gang(bench: Bench, *specs: Json, **changes: Any) -> None:  # noqa: ANN401
    """Put a worker for each of ``specs``, whose pod demands that."""
    on = changes.get("on", "")
    bench.put("workflows", gang_workflow([(on, None)] * len(specs), gang=f"{len(specs)},1" if on else ""))
    for rank, spec in enumerate(specs):
        made = worker(rank, size=len(specs), **changes)
        made["spec"] |= spec
        bench.put("pods", made)


def at(*nodes: NodeName) -> Place:
    return Place(G, nodes)


def notes(bench: Bench, rank: int) -> dict[str, str]:
    return dict(bench.fake.store.objects["pods"][f"{NAMESPACE}/{name_of(rank)}"]["metadata"]["annotations"])


def placed_on(bench: Bench, workers: int) -> list[str | None]:
    return [notes(bench, rank).get(labels.ANNOTATION_PLACED_ON) for rank in range(workers)]


def test_a_gang_starts_only_where_every_worker_may(bench: Bench) -> None:
    put_nodes(bench)
    put_gang(bench, EAST | POOL, EAST | POOL, gated=True)
    bench.begin()
    assert bench.trial("g").may_use == frozenset({N1, N3})
    assert "selector or affinity" in bench.world.apply(at(N1, N2)).detail
    assert bench.world.apply(at(N1, N3)).done
    bench.until(lambda: placed_on(bench, 2) == ["n1", "n3"])


def test_no_worker_of_a_gang_goes_to_a_node_whose_taint_it_does_not_tolerate(bench: Bench) -> None:
    put_nodes(bench)
    put_gang(bench, EAST, EAST, gated=True)
    bench.begin()
    assert "does not tolerate the taint pool" in bench.world.apply(at(N1, N3)).detail


def test_nodes_found_for_a_gang_are_those_that_its_demands_allow(bench: Bench) -> None:
    put_nodes(bench)
    put_gang(bench, EAST, EAST, EAST, gated=True, cpu="300m")
    bench.begin()
    assert bench.world.apply(Place(G)).done
    bench.until(lambda: placed_on(bench, 3) == ["n1"] * 3)


def test_a_gang_that_fits_only_where_its_demands_forbid_it_waits(bench: Bench) -> None:
    put_nodes(bench)
    put_gang(bench, EAST, EAST, gated=True, cpu="600m")
    bench.begin()
    assert bench.world.apply(Place(G)).detail.endswith("that it may use")
    bench.settle()
    assert placed_on(bench, 2) == [None, None]


def test_no_node_is_chosen_for_a_gang_whose_workers_demand_different_ones(bench: Bench) -> None:
    put_nodes(bench)
    put_gang(bench, EAST, {}, gated=True)
    bench.begin()
    assert bench.trial("g").may_use == frozenset()
    assert "more of its node than is read" in bench.world.apply(at(N1, N1)).detail


def test_a_gang_moves_only_where_its_demands_hold_for_all_and_its_leaving_workers_are_room(bench: Bench) -> None:
    put_nodes(bench)
    put_gang(bench, EAST, EAST, on="n1", cpu="400m")
    bench.begin()
    assert "selector or affinity" in bench.world.apply(Migrate(G, (N1, N2))).detail
    assert "do not fit on n1" in bench.world.apply(Migrate(G, (N1, N1, N1))).detail
    assert bench.world.apply(Migrate(G, (N1,))).done


class Runs:
    """Makes runs, and notes for whom."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def of(self, trial: str, params: Mapping[str, Any], *, may_make: bool) -> str:
        del params, may_make
        self.asked.append(trial)
        return f"run-{len(self.asked)}"


def put_told(bench: Bench, **changes: Any) -> None:  # noqa: ANN401
    on = changes.get("on", "")
    bench.put("workflows", gang_workflow([(on, None)] * 2, gang="2,1" if on else ""))
    for rank in range(2):
        bench.put("pods", told(worker(rank, **changes)))


def test_the_run_is_told_to_rank_0_alone_as_the_gates_open(bench: Bench) -> None:
    runs = Runs()
    put_told(bench, gated=True)
    world = bench.begin(run_of=runs.of)
    assert world.apply(at(N1, N2)).done
    bench.until(lambda: placed_on(bench, 2) == ["n1", "n2"])
    bench.settle()
    assert [notes(bench, rank).get(labels.ANNOTATION_RUN) for rank in range(2)] == ["run-1", None]
    assert runs.asked == [TRIAL]


def test_the_run_is_told_to_rank_0_alone_where_no_gate_held_the_gang(bench: Bench) -> None:
    runs = Runs()
    put_told(bench, on="n1", state="waiting", phase="Pending")
    bench.begin(run_of=runs.of)
    bench.until(lambda: notes(bench, 0).get(labels.ANNOTATION_RUN) == "run-1")
    bench.settle()
    assert labels.ANNOTATION_RUN not in notes(bench, 1)
    assert runs.asked == [TRIAL]
