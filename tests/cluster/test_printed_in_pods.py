"""A program that prints its metrics, in an image without Python: it is seen, it moves, and each step is there once."""

import pytest
from mlflow.tracking import MlflowClient

from tests.cluster.sweeps import printed_sweep
from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.proofs import MOVED, check_nothing_left, check_nothing_waits, runs_of

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(500)]


def test_what_a_shell_prints_gets_into_mlflow_and_goes_on_after_a_move(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(printed_sweep)
    bench.wait_all_training(workflow, steps=5)
    pod, target = bench.begin_move(workflow, "t000")
    bench.wait(lambda: pod.exit_code is not None, "t000 has left", 60)
    assert pod.exit_code == MOVED
    assert "epoch 0: loss=100 acc=0.5\nepoch 1: " in bench.logs(pod), "kubectl logs still shows what it prints"
    bench.wait_for_end(workflow)
    assert bench.phase(workflow) == "Succeeded", bench.story()
    first, second = bench.pods.of(workflow.name, "t000")
    assert (first.uid, second.node) == (pod.uid, target)

    client = MlflowClient(bench.tracking.uri)
    for trial, rate in zip(workflow.trials, workflow.rates, strict=True):
        ((_, (run,)),) = ((name, runs) for name, runs in runs_of(bench, workflow).items() if name.endswith(trial))
        assert run.info.status == "FINISHED"
        for key, values in (
            ("loss", [rate * (100 - step) for step in range(printed_sweep.STEPS)]),
            ("acc", [0.5] * printed_sweep.STEPS),
        ):
            history = sorted(client.get_metric_history(run.info.run_id, key), key=lambda point: point.step)
            assert [(point.step, point.value) for point in history] == list(enumerate(values))
    check_nothing_waits(bench)
    check_nothing_left(bench, workflow)
