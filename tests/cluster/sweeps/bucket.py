"""A bucket that the pods of a test cluster reach, and the settings of sweeps that keep their checkpoints in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

from hera.workflows.env_from import SecretEnvFrom
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from mlflow_hooks.head import Head
from mlflow_hooks.store_address import open_store
from tests.cluster.layout import HOST_ADDRESS
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.proofs import runs_of
from tests.mlflow_hooks.object_servers import BUCKET, S3Server

LOGIN: Final = "bucket"
"""Name of the Secret that tells pods where the server is, and its login."""
IN_BUCKET: Final[dict[str, Any]] = {"state": f"s3://{BUCKET}/sweeps", "env_from": [SecretEnvFrom(name=LOGIN)]}
"""Settings of a sweep; its pods have no volume that outlives them."""


@contextmanager
def bucket_of(bench: Bench) -> Iterator[S3Server]:
    """Run a server for the namespace of ``bench``, and give its pods the login."""
    server = S3Server(HOST_ADDRESS, free_ports(1)[0])
    server.start()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": LOGIN}, "stringData": server.environment}
    try:
        bench.kubectl.create([secret])
        yield server
    finally:
        server.stop()


def histories(bench: Bench, workflow: Workflow, sweep: str, key: str = "loss") -> dict[str, list[Metric]]:
    """Return what MLflow has of a metric of each trial, by short id; a bucket holds all of that as well."""
    client = MlflowClient(bench.tracking.uri)
    return {
        trial.rpartition(".")[2]: [point for run in runs for point in client.get_metric_history(run.info.run_id, key)]
        for trial, runs in runs_of(bench, workflow, sweep).items()
    }


def wait_until_told(bench: Bench, workflow: Workflow, sweep: str, steps: int) -> None:
    """Wait until MLflow has so many steps of each trial."""

    def told() -> bool:
        found = histories(bench, workflow, sweep)
        return all(len(found.get(trial, ())) >= steps for trial in workflow.trials)

    bench.wait(told, f"MLflow has {steps} steps of each trial", 150)


def wait_for_checkpoint(bench: Bench, server: S3Server, trial: str) -> None:
    """Wait until the bucket holds a whole checkpoint of a trial, given by its whole id."""

    def held() -> bool:
        head = store.read(f"{trial}/head.json")
        return head is not None and bool(Head.decode(head[0]).checkpoints)

    with mock.patch.dict(os.environ, server.environment):
        store = open_store(server.address)
        bench.wait(held, f"the bucket holds a checkpoint of {trial}", 60)
