"""A run through Argo on the test cluster, steered by the controller that the project's own manifests deploy."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mlflow.tracking import MlflowClient

from benchmarks.cluster.installation import cluster_with_controller
from benchmarks.cluster.sweep import run_once, wait_for_record
from benchmarks.forecasts_for_real import judge
from benchmarks.payoff.bounds import bounds, cpu_used
from benchmarks.payoff.cpu import CpuReading, SpeedProbe
from benchmarks.payoff.plan import Plan, Task
from benchmarks.payoff.records import Delivered, Run
from controllers.core.errors import SpeconError
from hera_specon.records.tracked import tracked_record
from hera_specon.replay.past_sweeps import KnownObjective
from hera_specon.replay.sources import Where, find_past
from tests.cluster.installation import forwarded
from tests.cluster.kubectl import Kubectl


class ArgoCluster:
    """Makes runs of ``plan`` on a cluster that is up."""

    def __init__(self, plan: Plan, kubectl: Kubectl) -> None:
        self._plan, self.kubectl = plan, kubectl

    def make(self, task: Task) -> Run:
        """Submit a sweep under one policy, wait for its end, and read its record."""
        began, moment, before = time.monotonic(), datetime.now(UTC), CpuReading.now()
        with SpeedProbe() as probe:
            counted = run_once(self._plan.sweeps[task.sweep], self.kubectl, task.policy, seed=task.seed)
        with forwarded(self.kubectl, "mlflow") as uri:
            client = MlflowClient(uri)
            wait_for_record(client, counted.workflow)
            (of_policy,) = tracked_record(client, counted.workflow).runs
            where = Where(Path(), uri, self._plan.cores, KnownObjective())
            (past,) = find_past(counted.workflow, where).sweeps
        seconds, result = time.monotonic() - began, of_policy.result
        if result is None:
            message = f"{counted.workflow} has ended, and its record has no result"
            raise SpeconError(message)
        stolen = CpuReading.now().since(before).stolen / seconds
        # The control plane and MLflow are no strangers, and cannot be told from those that are.
        delivered = Delivered(counted.cpu_seconds / counted.seconds, None, None, stolen, probe.seconds)
        cpu_s, bound = sum(map(cpu_used, past.trials)), bounds(past, self._plan.workers)
        foreseen = judge(result, of_policy.forecasts)
        return Run(task, f"{moment:%F %T}", seconds, result, cpu_s, *bound, delivered, foreseen)


@contextmanager
def test_cluster(plan: Plan, tell: Callable[[str], None]) -> Iterator[ArgoCluster]:
    """Bring the cluster up, and take it down in the end."""
    with cluster_with_controller(tell) as kubectl:
        yield ArgoCluster(plan, kubectl)
