"""Access to an API server: errors by kind, and what is refused before it is asked."""

from pathlib import Path

import pytest

from controllers.core.errors import SpeconError
from controllers.worlds.argo.api import (
    NODES,
    PODS,
    ApiError,
    ConflictError,
    ForbiddenError,
    GoneError,
    KubeApi,
    NotFoundError,
    RejectedError,
    UnavailableError,
)
from tests.argo_world.fake_api import FakeApi
from tests.argo_world.objects import node


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, GoneError),
        (422, RejectedError),
        (429, UnavailableError),
        (500, UnavailableError),
        (302, UnavailableError),
    ],
)
def test_an_error_has_its_kind_and_the_servers_words(fake: FakeApi, status: int, kind: type[ApiError]) -> None:
    fake.fault = lambda _: (status, "because")
    with pytest.raises(kind, match=rf"GET /api/v1/nodes: {status}: because"):
        fake.client().get(NODES.path())


def test_a_server_that_is_not_there_is_unavailable(fake: FakeApi) -> None:
    api = fake.client()
    fake.close()
    with pytest.raises(UnavailableError, match="does not answer"):
        api.get(NODES.path())


def test_a_name_can_not_leave_its_collection() -> None:
    assert PODS.path("ns", "../../secrets/x") == "/api/v1/namespaces/ns/pods/..%2F..%2Fsecrets%2Fx"


def test_a_delete_is_for_the_very_object_only(fake: FakeApi) -> None:
    uid = fake.store.put("nodes", node("n1"))["metadata"]["uid"]
    with pytest.raises(ConflictError):
        fake.client().delete(NODES.path(None, "n1"), "another")
    fake.client().delete(NODES.path(None, "n1"), uid)
    assert fake.store.objects["nodes"] == {}


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpeconError, match="--kubeconfig"):
        KubeApi.load(str(tmp_path / "none"), None)
