"""A sweep that is cut short on one machine and goes on on another: two folders, one store, one MLflow server."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from tests.integration.workbench import Workbench, opened, results
from tests.mlflow_hooks.hook_jobs import Server

pytestmark = pytest.mark.slow

NODES = ("--nodes", "2", "--cpus-per-node", "0.4", "--plain", "--json", "out.json", "--policy", "default")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "mlflow").mkdir()
    server = Server(tmp_path / "mlflow")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def machines(tmp_path: Path, server: Server) -> Iterator[tuple[Workbench, Workbench]]:
    """Give two machines whose trials keep their checkpoints in the same store."""
    for name in ("laptop", "tower"):
        (tmp_path / name).mkdir()
    with opened(tmp_path / "laptop") as laptop, opened(tmp_path / "tower") as tower:
        for bench in (laptop, tower):
            bench.tracking_uri = server.uri
            bench.write(steps=(150,), wishes=f'state="file://{tmp_path}/store",')
        yield laptop, tower


def cut_short(bench: Workbench) -> str:
    """Run a part of the sweep on a machine, and return what it said."""
    process = bench.start("run", "sweep.py", *NODES)
    bench.wait_for(lambda: bench.steps_journalled() > 100)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    return output


def test_trials_go_on_where_they_were_in_their_own_runs(machines: tuple[Workbench, Workbench], server: Server) -> None:
    laptop, tower = machines
    told = cut_short(laptop)
    assert f"elsewhere they go on with -p continue-sweep={laptop.uid}" in told
    began_ms = time.time() * 1000
    done = tower.run("run", "sweep.py", "-p", f"continue-sweep={laptop.uid}", *NODES)
    assert done.code == 0, done.output
    assert f"of sweep {laptop.uid}" in done.output
    (run,) = results(tower.folder / "out.json")
    for trial in run["trials"]:
        assert trial["final_metric"] == pytest.approx((1 - trial["params"]["lr"]) ** 300, rel=1e-9)

    client = MlflowClient(server.uri)
    experiment = client.get_experiment_by_name("descent")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    of_trials = [run for run in runs if "specon.trial_id" in run.data.tags]
    assert sorted(run.data.tags["specon.trial_id"] for run in of_trials) == [
        f"{laptop.uid}.descent.t00{number}" for number in range(3)
    ]
    assert len(runs) == len(of_trials) + 1  # the sweep's own
    firsts = []
    for run_of in of_trials:
        history = client.get_metric_history(run_of.info.run_id, "loss")
        assert sorted(point.step for point in history) == list(range(150))
        assert run_of.info.status == "FINISHED"
        firsts.append(min(point.timestamp for point in history))
    assert min(firsts) < began_ms

    again = laptop.run("run", "sweep.py", "-p", f"continue-sweep={laptop.uid}", *NODES)
    assert again.code == 0, again.output
    assert {len(client.get_metric_history(run_of.info.run_id, "loss")) for run_of in of_trials} == {150}


def test_what_cannot_go_on_is_refused_before_anything_starts(machines: tuple[Workbench, Workbench]) -> None:
    laptop, tower = machines
    cut_short(laptop)
    for words, why in (
        (("continue-sweep=never",), "no trial of that sweep is in file://"),
        (("continue-sweep=a/b",), "an id has up to 100 letters"),
        ((f"continue-sweep={laptop.uid}", "--policy", "ahead"), "under one policy"),
    ):
        refused = tower.run("run", "sweep.py", "-p", *words, *NODES)
        assert refused.code == 2, refused.output
        assert why in " ".join(refused.output.split())
    tower.write(steps=(150,), rates=(0.04, 0.05, 0.06), wishes=f'state="file://{laptop.folder.parent}/store",')
    refused = tower.run("run", "sweep.py", "-p", f"continue-sweep={laptop.uid}", *NODES)
    assert refused.code == 2, refused.output
    assert "lr=0.01 there and lr=0.04 here" in " ".join(refused.output.split())
    tower.write(steps=(150,))
    refused = tower.run("run", "sweep.py", "-p", f"continue-sweep={laptop.uid}", *NODES)
    assert "names no store that this machine shares" in " ".join(refused.output.split())
    assert not list(tower.folder.glob(".specon/runs/*"))
