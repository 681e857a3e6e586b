"""``specon ui``: a page on this machine about runs here, and about sweeps in a cluster."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hera_specon.cluster.access import open_cluster
from hera_specon.live.cluster import ClusterShelf
from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.cluster_objects import PODS, WORKFLOWS, listed, pod, workflow
from tests.hera_specon.cli.conftest import Specon
from tests.hera_specon.live.served import serving
from tests.hera_specon.report.example_run import write_example_run

ROOT = Path(__file__).resolve().parents[3]
NOWHERE = "http://127.0.0.1:9"


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run ``specon ui`` in ``folder``, and give the process and the first line that it prints."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("DISPLAY", None)
    command = [sys.executable, "-m", "hera_specon.cli", "ui", *arguments]
    with subprocess.Popen(command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE) as process:
        watch = threading.Timer(120, process.kill)
        watch.start()
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline()
        finally:
            watch.cancel()
            process.kill()


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - an address of ours
        return str(answer.read().decode())


def test_runs_on_this_machine_are_listed_and_shown_until_ctrl_c(tmp_path: Path) -> None:
    write_example_run(tmp_path / ".specon")
    with started(tmp_path, "--no-open") as (process, line):
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", line)
        assert found, line
        assert 'href="sweeps/demo-1"' in read(found[0])
        assert "trial-11" in json.loads(read(f"{found[0]}sweeps/demo-1/standing"))["html"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_one_run_is_opened_by_its_name(tmp_path: Path) -> None:
    write_example_run(tmp_path / ".specon")
    with started(tmp_path, "demo-1", "--no-open") as (_, line):
        assert re.search(r"/sweeps/demo-1 ", line)


def test_a_sweep_that_is_not_there_is_refused(specon_there: Specon, cluster: Cluster) -> None:
    cluster.objects[WORKFLOWS] = listed()
    refused = specon_there("ui", "demo-9", "--no-open")

    assert refused.exit_code == 2
    assert "demo-9" in refused.stderr


def test_a_port_that_is_taken_is_named(specon_there: Specon, tmp_path: Path, cluster: Cluster) -> None:
    write_example_run(tmp_path / ".specon")
    port = cluster.url.rpartition(":")[2]
    refused = specon_there("ui", "--port", port, "--no-open")

    assert refused.exit_code == 2
    assert port in refused.stderr


@pytest.fixture
def of_cluster(specon_there: Specon, cluster: Cluster) -> ClusterShelf:
    del specon_there  # its kubeconfig is the one that is read here
    held = workflow()
    cluster.objects[WORKFLOWS] = listed(held)
    cluster.objects[f"{WORKFLOWS}/{held['metadata']['name']}"] = held
    cluster.objects[PODS] = listed(pod(0))
    return ClusterShelf(open_cluster(None, None, None), NOWHERE)


def test_sweeps_in_a_cluster_are_read_as_the_reader_and_only_shown(of_cluster: ClusterShelf, cluster: Cluster) -> None:
    with serving(of_cluster) as served:
        name = re.findall(r'href="sweeps/([^"]*)"', served.ask("/").body)[0]
        assert name == "vae-x1"
        shown = served.ask(f"/sweeps/{name}/standing")
        assert "in namespace lab" in shown.html
        assert "<button" not in shown.html
        refused = served.post(f"/sweeps/{name}/ask", {"what": "stop", "trials": None})
        assert (refused.status, refused.body) == (
            409,
            "this page only shows sweeps in a cluster: specon stop vae-x1 -n lab",
        )
        assert served.post(f"/sweeps/{name}/policy", {"policy": "specon"}).status == 409
    assert {asked.method for asked in cluster.asked} == {"GET"}


def test_a_namespace_that_may_not_be_read_says_so_on_the_page(of_cluster: ClusterShelf, cluster: Cluster) -> None:
    cluster.refusals["GET", WORKFLOWS] = 403
    with serving(of_cluster) as served:
        assert "refused with 403" in served.ask("/").body
        assert served.ask("/sweeps/vae-x1/standing").status == 409
