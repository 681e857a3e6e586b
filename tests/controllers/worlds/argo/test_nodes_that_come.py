"""Nodes that can come, as the Argo world shows them, and what a trial that is let go without a node asks for."""

from typing import Any

from controllers.core.actions import Place
from controllers.core.model import NodeKind, NodeName, Phase, TrialId
from controllers.worlds.argo.meaning.node_kinds import UNKNOWN
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import BEGAN, node, pod, stamp, trial

A = TrialId(trial("a"))
POOL = "cloud.google.com/gke-nodepool"


def of_pool(name: str, *, made_at: float, ready: bool = True) -> dict[str, Any]:
    item = node(name, ready=ready)
    item["metadata"]["creationTimestamp"] = stamp(made_at)
    item["metadata"]["labels"][POOL] = "train"
    return item


def kinds(bench: Bench) -> dict[str, NodeKind]:
    return {kind.name: kind for kind in bench.world.kinds()}


def test_a_node_that_comes_while_the_sweep_runs_makes_its_kind_known(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    assert kinds(bench) == {"": UNKNOWN}
    bench.put("nodes", of_pool("n3", made_at=BEGAN + 60))
    bench.until(lambda: "train" in kinds(bench))
    assert (kinds(bench)["train"].cpu, kinds(bench)["train"].more) == (1.0, 1.0)
    found = bench.world.node(NodeName("n3"))
    assert found is not None
    assert found.kind == "train"


def test_a_trial_that_is_let_go_waits_for_the_scheduler_and_names_no_node(bench: Bench) -> None:
    bench.put("pods", pod(gated=True))
    bench.begin()
    assert bench.trial().waits
    assert bench.world.apply(Place(A)).done
    assert (bench.trial().phase, bench.trial().gated, bench.trial().nodes) == (Phase.PENDING, False, ())
    bench.until(lambda: not (bench.pod() or {})["spec"].get("schedulingGates"))
    assert "nodeSelector" not in (bench.pod() or {})["spec"]
    bench.settle()
    assert (bench.trial().phase, bench.trial().gated, bench.trial().nodes) == (Phase.PENDING, False, ())


def test_a_trial_shows_which_kinds_its_selectors_let_it_ask_for(bench: Bench) -> None:
    item = pod(gated=True)
    item["spec"]["nodeSelector"] = {POOL: "other"}
    bench.put("pods", item)
    bench.put("nodes", of_pool("n3", made_at=BEGAN + 60))
    bench.begin()
    assert (bench.trial().may_use, bench.trial().may_ask) == (frozenset(), frozenset())
    item["spec"]["nodeSelector"] = {POOL: "train"}
    bench.put("pods", item)
    bench.until(lambda: bench.trial().may_ask != frozenset())
    assert (bench.trial().may_use, bench.trial().may_ask) == (frozenset({NodeName("n3")}), None)
