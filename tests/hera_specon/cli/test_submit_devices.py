"""``specon submit`` of sweeps whose trials ask for devices."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.conftest import Specon
from tests.hera_specon.cli.submitted_sweep import SWEEP, trial, written

pytestmark = pytest.mark.usefixtures("claim")
NODES = "/api/v1/nodes"


def with_gpus(sweep: str, count: float) -> str:
    # A file of its own: Python takes one that was written twice in a second, with as many bytes, for unchanged.
    file, asked = (
        Path(sweep).with_stem(f"sweep_{count}".replace(".", "_")),
        f"resources=Resources(cpu_request=1, gpus={count}),",
    )
    text = SWEEP.replace("import Parameter, ", "import Parameter, Resources, ")
    file.write_text(text.replace("    )\n", f"        {asked}\n    )\n"))
    return str(file)


def node_with(name: str, gpus: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": gpus}}}


def test_more_devices_than_any_node_has_are_warned_of_with_how_many_there_are(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    cluster.objects[NODES] = {"items": [node_with("a", "2"), node_with("b", "4")]}

    fitting, lacking = (specon_there("submit", with_gpus(sweep, count)) for count in (4, 8))

    assert (fitting.exit_code, fitting.stderr) == (0, "")
    assert lacking.exit_code == 0
    assert "each trial of vae asks for 8 nvidia.com/gpu, but no node has as much (at most 4 nvidia.com/gpu)" in (
        lacking.stderr
    )


def test_nodes_that_may_not_be_listed_are_believed_to_have_the_devices(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    cluster.refusals["GET", NODES] = 403

    result = specon_there("submit", with_gpus(sweep, 8))

    assert (result.exit_code, result.stderr) == (0, "")


def test_nodes_are_not_asked_for_where_no_trial_needs_a_device(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    specon_there("submit", sweep)

    assert NODES not in [asked.path for asked in cluster.asked]


def test_devices_written_by_hand_that_no_pod_can_have_are_refused_with_their_number(
    specon_there: Specon, cluster: Cluster, sweep: str, tmp_path: Path
) -> None:
    manifest = written(with_gpus(sweep, 1))
    trial(manifest)["container"]["resources"]["limits"]["nvidia.com/gpu"] = "3"
    by_hand = tmp_path / "by-hand.yaml"
    by_hand.write_text(yaml.safe_dump(manifest))

    result = specon_there("submit", str(by_hand))

    assert result.exit_code == 2
    assert "'vae-trial' asks for '1' of nvidia.com/gpu with a limit of '3'" in result.stderr
    assert not [asked for asked in cluster.asked if asked.method == "POST"]


def test_a_part_of_a_gpu_is_refused_with_what_a_cluster_has_instead(
    specon_there: Specon, cluster: Cluster, sweep: str
) -> None:
    result = specon_there("submit", with_gpus(sweep, 0.5))

    assert result.exit_code == 2
    assert "'vae-trial' asks for '0.5' of nvidia.com/gpu, and Kubernetes gives devices out whole" in result.stderr
    for instead in ("nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "resource_claims="):
        assert instead in result.stderr
    assert not [asked for asked in cluster.asked if asked.method == "POST"]
