"""A sweep of two trials, and a training script that does something to MLflow's server before its last step."""

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from hera.workflows import Workflow

from controllers.worlds.local.pulse import answers
from hera_specon import Sweep, choice, minimize
from mlflow_hooks import trial

STEPS = 8
_SEEN_WITHIN_S = 4.0


def workflow(harm: str, *values: int) -> Mapping[str, Any]:
    """Return a sweep over ``values``, before whose last step ``harm`` (the name of a signal) comes over the server."""
    with Workflow(generate_name="end-", entrypoint="end") as w:
        Sweep(
            name="end",
            image="x:1",
            command=[sys.executable, __file__, harm],
            space={"k": choice(*values)},
            search="grid",
            objective=minimize("loss"),
            retries=0,
        )
    manifest: Mapping[str, Any] = json.loads(json.dumps(w.to_dict(), default=str))
    return manifest


def runs_in(database: Path) -> dict[str, tuple[str, int]]:
    """Return the status of each run that is not deleted, by its trial or its sweep, and how many losses it has."""
    question = (
        "SELECT COALESCE(t.value, s.value), r.status, "
        "(SELECT COUNT(*) FROM metrics m WHERE m.run_uuid = r.run_uuid AND m.key = 'loss') FROM runs r "
        "JOIN tags s ON s.run_uuid = r.run_uuid AND s.key = 'specon.sweep_id' "
        "LEFT JOIN tags t ON t.run_uuid = r.run_uuid AND t.key = 'specon.trial_id' WHERE r.lifecycle_stage = 'active'"
    )
    with sqlite3.connect(database) as opened:
        return {name.partition(".")[2]: (status, losses) for name, status, losses in opened.execute(question)}


def _server() -> int:
    """Return the process that listens where MLflow is."""
    port = int(os.environ["MLFLOW_TRACKING_URI"].rpartition(":")[2])
    for process in psutil.process_iter():
        try:
            found = process.net_connections("tcp")
        except psutil.Error:
            continue
        if any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in found):
            return process.pid
    message = f"nobody listens on port {port}"
    raise LookupError(message)


def _wait_for_the_server() -> None:
    """Wait until MLflow answers, as trials begin before it does, and until the controller must have seen that."""
    while not answers(f"{os.environ['MLFLOW_TRACKING_URI']}/health", 2.0):
        time.sleep(0.1)
    time.sleep(_SEEN_WITHIN_S)


def main() -> None:
    """Train; of all trials the one with ``--k=0`` does the harm."""
    harm, k = sys.argv[1], int(sys.argv[2].rpartition("=")[2])
    with trial(flush_s=0.5) as t:
        for step in t.steps(STEPS):
            if harm and k == 0 and step == STEPS - 1:
                _wait_for_the_server()
                os.kill(_server(), getattr(signal, harm))
            t.log(loss=k + 1 / (step + 1))


if __name__ == "__main__":
    main()
