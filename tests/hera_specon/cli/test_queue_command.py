"""``specon queue``: what workflows tell of the sweeps that share a cluster."""

import json
import time

from controllers.core.queue_places import QueuePlace, annotation_of
from controllers.worlds.argo.calls.api import WORKFLOWS as RESOURCE
from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.cluster_objects import WORKFLOWS, listed, workflow
from tests.hera_specon.cli.conftest import Specon

POLICY = "specon:interval=7"


def told(**changes: object) -> dict[str, str]:
    usual = {"policy": POLICY, "weight": 2.0, "running": 3, "waiting": 5, "has_cpu": 3.0, "entitled_cpu": 4.0}
    place = QueuePlace(**{**usual, **changes})  # type: ignore[arg-type] # any field
    return {annotation_of(POLICY): place.written()}


def test_a_row_says_what_a_sweep_counts_has_and_may_have_and_why_it_waits(
    specon_there: Specon, cluster: Cluster
) -> None:
    note = told(reason="others come first", waits_since=time.time() - 125, priority=7, has_devices="1 nvidia.com/gpu")
    cluster.objects[WORKFLOWS] = listed(workflow(annotations=note), workflow("old-x1", phase="Succeeded"))
    result = specon_there("queue")
    assert result.exit_code == 0, result.stderr
    (row,) = [line for line in result.stdout.splitlines() if "vae-x1" in line]
    for cell in ("lab", "vae", "2", "7", "3", "5", "3 / 4", "1 nvidia.com/gpu / none", "2 m 0", "others come first"):
        assert cell in row
    assert "old-x1" not in result.stdout


def test_a_sweep_that_no_controller_tells_of_is_there_too(specon_there: Specon, cluster: Cluster) -> None:
    cluster.objects[WORKFLOWS] = listed(workflow())
    assert "no controller has told anything of it" in specon_there("queue").stdout
    cluster.objects[WORKFLOWS] = listed()
    assert "No sweep runs or waits here." in specon_there("queue").stdout


def test_json_has_the_same_for_scripts(specon_there: Specon, cluster: Cluster) -> None:
    cluster.objects[WORKFLOWS] = listed(workflow(annotations=told(waits_since=1_700_000_000.0)), workflow("b-x1"))
    first, second = json.loads(specon_there("queue", "--json").stdout)
    assert first["sweeps"] == ["vae"]
    assert (first["namespace"], first["workflow"], first["waiting"]) == ("lab", "vae-x1", 5)
    assert (first["waits_since"], first["told_at"]) == ("2023-11-14T22:13:20+00:00", "")
    assert second["reason"] == "no controller has told anything of it"


def test_all_namespaces_are_listed_where_one_may_look_at_them(specon_there: Specon, cluster: Cluster) -> None:
    cluster.objects[RESOURCE.path()] = listed(workflow(annotations=told()))
    assert "vae-x1" in specon_there("queue", "--all-namespaces").stdout
    cluster.refusals["GET", RESOURCE.path()] = 403
    refused = specon_there("queue", "-A")
    assert refused.exit_code == 2
    assert "403" in refused.stderr


def test_words_of_others_steer_no_terminal(specon_there: Specon, cluster: Cluster) -> None:
    cluster.objects[WORKFLOWS] = listed(workflow(annotations=told(reason="\x1b[2Jboo", has_devices="\x1b]0;x")))
    assert "\x1b" not in specon_there("queue").stdout
