"""The page of a sweep in a cluster: read with the reader's own login, while the sweep runs, and only shown."""

import pytest

from hera_specon.cluster.access import open_cluster
from hera_specon.live.cluster import ClusterShelf
from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.namespace import reader_kubeconfig
from tests.cluster.sweeps.proofs import check_whole
from tests.hera_specon.live.served import Served, serving

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def charts_are_there(served: Served, sweep: str) -> bool:
    report = served.ask(f"/sweeps/{sweep}/report")
    return report.problem is None and 'data-part="learning"' in report.html


def test_a_sweep_is_shown_while_it_runs_and_when_it_is_over_and_takes_no_orders(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hera_specon.live.cluster.REPORT_S", 2.0)
    bench.controller().start().wait_ready()
    workflow = bench.submit()
    bench.wait_all_training(workflow)
    access = open_cluster(str(bench.cluster.kubeconfig), None, bench.namespace)
    page = f"/sweeps/{workflow.name}"
    with serving(ClusterShelf(access, bench.tracking.uri)) as served:
        assert f'href="sweeps/{workflow.name}"' in served.ask("/").body
        standing = served.ask(f"{page}/standing")
        assert standing.problem is None
        assert "data-over" not in standing.html
        assert all(f"descent.{trial}" in standing.html for trial in workflow.trials)
        bench.wait(lambda: charts_are_there(served, workflow.name), "the charts are there", 120)
        assert served.post(f"{page}/ask", {"what": "stop", "trials": None}).status == 409
        bench.wait_for_end(workflow)
        bench.wait(lambda: "data-over" in served.ask(f"{page}/standing").html, "the page tells of the end", 60)
    check_whole(bench, workflow)


def test_who_may_read_one_namespace_sees_no_sweep_of_another(bench: Bench) -> None:
    workflow = bench.submit(steps=5)
    login = reader_kubeconfig(bench.kubectl, bench.folder / "reader.kubeconfig")
    for namespace, seen in ((bench.namespace, True), ("kube-system", False)):
        access = open_cluster(str(login), None, namespace)
        with serving(ClusterShelf(access, bench.tracking.uri)) as served:
            listed = served.ask("/").body
            assert (workflow.name in listed) == seen
            assert ("forbidden" in listed) != seen
            assert served.ask(f"/sweeps/{workflow.name}").status == (200 if seen else 409)
    bench.wait_for_end(workflow)
