"""``specon submit`` of sweeps whose trials claim devices."""

from pathlib import Path

import pytest

from tests.controllers.worlds.argo.objects import Json
from tests.controllers.worlds.argo.objects_of_claims import KIND, device, device_class, device_slice, request
from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.conftest import Specon
from tests.hera_specon.cli.submitted_sweep import SWEEP

pytestmark = pytest.mark.usefixtures("claim")
GROUP = "/apis/resource.k8s.io/v1"
TEMPLATE = f"{GROUP}/namespaces/lab/resourceclaimtemplates/one-gpu"


@pytest.fixture
def claiming(sweep: str) -> str:
    file = Path(sweep).with_stem("claiming")
    file.write_text(SWEEP.replace("    )\n", '        resource_claims={"gpu": "one-gpu"},\n    )\n'))
    return str(file)


@pytest.fixture
def offering(cluster: Cluster) -> Cluster:
    """A cluster of Kubernetes 1.37 with two devices on a node."""
    cluster.objects["/version"] = {"gitVersion": "v1.37.0"}
    cluster.objects[f"{GROUP}/resourceslices"] = {"items": [device_slice("n1", device("a"), device("b"))]}
    cluster.objects[f"{GROUP}/deviceclasses"] = {"items": [device_class()]}
    cluster.objects[TEMPLATE] = template(request())
    return cluster


def template(*requests: Json) -> Json:
    return {"metadata": {"name": "one-gpu"}, "spec": {"spec": {"devices": {"requests": list(requests)}}}}


@pytest.mark.usefixtures("offering")
def test_claims_that_a_node_can_satisfy_are_submitted_without_a_word(specon_there: Specon, claiming: str) -> None:
    result = specon_there("submit", claiming)

    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request(3), f"each trial of vae claims 3 {KIND}, but no node has as much (at most 2 {KIND}): they wait"),
        (request(selectors=[{}]), "is not counted (it asks for selectors of its own): no policy chooses its nodes"),
        (request(of="missing"), "is not counted (there is no DeviceClass missing"),
    ],
)
def test_what_stands_against_claims_is_warned_of(
    specon_there: Specon, offering: Cluster, claiming: str, asked: Json, said: str
) -> None:
    offering.objects[TEMPLATE] = template(asked)

    result = specon_there("submit", claiming)

    assert result.exit_code == 0
    assert said in result.stderr


def test_a_template_that_is_not_there_is_warned_of(specon_there: Specon, offering: Cluster, claiming: str) -> None:
    del offering.objects[TEMPLATE]

    result = specon_there("submit", claiming)

    assert result.exit_code == 0
    assert "there is no ResourceClaimTemplate 'one-gpu' in namespace 'lab'" in result.stderr


def test_shares_that_never_change_are_told_of_before_1_37(
    specon_there: Specon, offering: Cluster, claiming: str
) -> None:
    offering.objects["/version"] = {"gitVersion": "v1.36.2"}

    result = specon_there("submit", claiming)

    assert result.exit_code == 0
    assert (
        "the trials of vae keep the share of CPU that they begin with: Kubernetes 1.36.2 changes none" in result.stderr
    )


def test_what_may_not_be_read_is_believed_to_be_right(specon_there: Specon, offering: Cluster, claiming: str) -> None:
    for path in (TEMPLATE, f"{GROUP}/resourceslices"):
        offering.refusals["GET", path] = 403

    result = specon_there("submit", claiming)

    assert (result.exit_code, result.stderr) == (0, "")


def test_nothing_is_asked_where_no_trial_claims_a_device(specon_there: Specon, cluster: Cluster, sweep: str) -> None:
    specon_there("submit", sweep)

    assert not [asked.path for asked in cluster.asked if "resource.k8s.io" in asked.path]
