"""The controller as a platform team deploys it, for all namespaces: first to recommend, then to act."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from controllers.core import labels
from controllers.worlds.argo.calls.api import CONFIG_MAPS, EVENTS, PODS
from hera_specon.records.tracked import tracked_record
from mlflow_hooks import contract
from tests.cluster.cluster import Cluster
from tests.cluster.installation import Installation, forwarded, installed
from tests.cluster.kubectl import Kubectl
from tests.cluster.sweeps import crowded_descent_sweep, descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow, opened_bench
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, moves, resizes
from tests.cluster.sweeps.tracking import ForwardedTracking

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

POLICY: Final = "specon:interval=4,alpha=0.1+flowcon:interval=4"
NAMESPACE: Final = "hera-specon"
REPORTER: Final = "hera-specon.io/controller"
OURS_ON_A_SWEEP: Final = {
    labels.ANNOTATION_OBJECTIVE,
    labels.ANNOTATION_DIRECTION,
    labels.ANNOTATION_POLICY,
    labels.ANNOTATION_WORKERS,
}
"""What its author wrote; the rest of ours is written by controllers."""


@contextmanager
def deployed(cluster: Cluster, folder: Path, *components: str) -> Iterator[tuple[Kubectl, ForwardedTracking]]:
    """Apply the cluster-wide overlay with its MLflow; yield kubectl in its namespace and MLflow's addresses."""
    settings = {"SPECON_CONTROLLER_INTERVAL": "1"}
    wanted = Installation(
        overlay="cluster-wide-with-mlflow", namespace=NAMESPACE, components=components, settings=settings, pods={}
    )
    with installed(cluster.kubectl, wanted, folder) as inside, forwarded(inside, "mlflow") as uri:
        yield inside, ForwardedTracking(uri, f"http://mlflow.{NAMESPACE}:5000")


def metric(inside: Kubectl, name: str) -> float:
    """Return a number that the controller's replicas show to Prometheus, summed over them."""
    pods = inside.items("pods", "--selector=app.kubernetes.io/name=specon-controller")
    proxies = (f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}:8080/proxy/metrics" for pod in pods)
    shown = "\n".join(inside("get", "--raw", proxy) for proxy in proxies)
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)} (\S+)$", shown, re.MULTILINE))


def recommended(inside: Kubectl) -> float:
    """Return how often something was recommended."""
    return sum(
        metric(inside, f'specon_actions_total{{kind="{k}",outcome="recommended"}}') for k in ("resize", "migrate")
    )


def written_by_a_controller(bench: Bench, workflow: Workflow) -> list[Any]:
    """Return what only a controller writes, of all that there is in the namespace of a sweep."""
    noted = [bench.workflow(workflow), *bench.api.get(PODS.path(bench.namespace))["items"]]
    names = {name for one in noted for name in one["metadata"].get("annotations", {})}
    states = bench.api.get(CONFIG_MAPS.path(bench.namespace), {"labelSelector": labels.LABEL_STATE})["items"]
    events = bench.api.get(EVENTS.path(bench.namespace))["items"]
    told = [event["note"] for event in events if event.get("reportingController") == REPORTER]
    marks = {name for name in names if name.startswith("hera-specon.io/")} - OURS_ON_A_SWEEP
    return [*marks, *states, *told]


def runs_of(bench: Bench, workflow: Workflow) -> Sequence[Run]:
    """Return the trials' runs of a sweep."""
    client = MlflowClient(bench.tracking.uri)
    experiment = client.get_experiment_by_name(descent_sweep.NAME)
    assert experiment is not None
    return client.search_runs([experiment.experiment_id], f"tags.`{contract.TAG_TRIAL_ID}` LIKE '{workflow.uid}.%'")


def test_a_controller_that_recommends_says_what_it_would_do_and_does_nothing(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    with (
        deployed(own_cluster, tmp_path, "recommend") as (inside, tracking),
        opened_bench(own_cluster, tracking, tmp_path / "sweep") as bench,
    ):
        workflow = bench.submit(crowded_descent_sweep, policy=POLICY, steps=240, work_ms=10)
        bench.wait_for_end(workflow)
        check_whole(bench, workflow)
        assert recommended(inside) > 0
        tags = [run.data.tags for run in runs_of(bench, workflow)]
        wishes = [tag["specon.recommended.action"] for tag in tags if "specon.recommended.action" in tag]
        assert [wish for wish in wishes if re.match("(resize|move) of ", wish)] == wishes != []
        assert written_by_a_controller(bench, workflow) == []
        assert resizes(bench, workflow) == 0
        assert [len(bench.pods.of(workflow.name, trial)) for trial in workflow.trials] == [1] * len(workflow.trials)


def test_one_controller_steers_the_sweeps_of_two_namespaces(own_cluster: Cluster, tmp_path: Path) -> None:
    with ExitStack() as stack:
        inside, tracking = stack.enter_context(deployed(own_cluster, tmp_path))
        benches = [stack.enter_context(opened_bench(own_cluster, tracking, tmp_path / name)) for name in ("a", "b")]
        sweeps = [(bench, bench.submit(policy=POLICY, steps=320)) for bench in benches]
        for bench, workflow in sweeps:
            bench.wait_all_training(workflow)
        asked = [(*sweep, *sweep[0].begin_move(sweep[1], "t001")) for sweep in sweeps]
        assert metric(inside, "specon_campaigns") == 2
        for bench, workflow, pod, target in asked:
            bench.wait_for_end(workflow)
            check_whole(bench, workflow)
            before, after, *_ = bench.pods.of(workflow.name, "t001")
            assert (before.uid, after.node) == (pod.uid, target)
            assert moves(bench, workflow) >= 1
            bench.wait(partial(recorded, bench, workflow), "its record is complete", 60)
            check_nothing_left(bench, workflow)


def recorded(bench: Bench, workflow: Workflow) -> bool:
    """Whether MLflow has the sweep's result."""
    return bool(tracked_record(MlflowClient(bench.tracking.uri), workflow.name).results())
