"""What a policy on a cluster knows of how much of each node is in use: what the trials report."""

import re

import pytest
from mlflow.tracking import MlflowClient

from controllers.record.timeline import EventKind
from hera_specon.records.tracked import sweep_runs, tracked_timeline
from tests.cluster.sweeps import late_descent_sweep
from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(700)]

# A trial must still run when the fourth comes, 105 s after the first. If that comes beside the third, the two need 90
# CPU seconds of one node of 0.4 core.
ENDS_WITHIN_S = 450.0


def test_trials_are_placed_by_what_those_before_them_really_use(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(late_descent_sweep, policy="least-used", steps=180, pause_ms=0, work_ms=250)
    bench.wait_for_end(workflow, ENDS_WITHIN_S)
    check_whole(bench, workflow)
    client = MlflowClient(bench.tracking.uri)
    (parent,) = sweep_runs(client, workflow.name)
    begun = [
        event
        for event in tracked_timeline(client, parent)
        if event.kind is EventKind.PHASE and event.phase == "running" and event.attempt == 1
    ]
    assert len(begun) == len(workflow.trials)
    assert len({event.node for event in begun[:3]}) == 3, "a trial was placed beside another though a node was idle"
    in_use = [int(found[1]) for event in begun if (found := re.search(r"(\d+)% of", event.reason or ""))]
    assert in_use[:3] == [0, 0, 0]
    assert in_use[3] >= 10, "the last trial was placed as if no node was in use"
    check_nothing_left(bench, workflow)
