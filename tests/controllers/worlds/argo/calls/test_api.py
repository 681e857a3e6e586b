"""Access to an API server: errors by kind, and what is refused before it is asked."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from controllers.core.errors import SpeconError
from controllers.worlds.argo.calls.api import NODES, PODS, KubeApi, _list_metadata
from controllers.worlds.argo.calls.errors import (
    ApiError,
    BudgetError,
    ConflictError,
    ForbiddenError,
    GoneError,
    NotAllowedNowError,
    NotFoundError,
    RejectedError,
    TooLargeError,
    TooManyRequestsError,
    UnavailableError,
)
from controllers.worlds.argo.calls.grants import REVIEWS
from controllers.worlds.argo.reading.pods import project_pod
from controllers.worlds.argo.writing import pod_changes
from tests.controllers.worlds.argo.fake_api import FakeApi
from tests.controllers.worlds.argo.objects import node, pod


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


def test_an_eviction_is_of_the_very_pod_only(fake: FakeApi) -> None:
    fake.store.put("pods", pod(uid="this"))
    for uid in ("another", "this"):
        record = project_pod(pod(uid=uid))
        assert record is not None
        if uid == "another":
            with pytest.raises(ConflictError):
                pod_changes.evict(fake.client(), record, waits=False)
        else:
            pod_changes.evict(fake.client(), record, waits=False)
    assert fake.store.objects["pods"] == {}


def test_a_budget_that_forbids_an_eviction_is_told_and_keeps_no_other_call_waiting(fake: FakeApi) -> None:
    fake.store.put("pods", pod(on="n1", uid="this"))
    fake.budget = "The disruption budget b needs 2 healthy pods and has 2 currently"
    record, api = project_pod(pod(on="n1", uid="this")), fake.client()
    assert record is not None
    with pytest.raises(BudgetError, match="disruption budget b needs 2 healthy pods"):
        pod_changes.evict(api, record, waits=False)
    pod_changes.annotate(api, record, {"a": "b"})


def test_a_question_may_be_asked_where_nothing_may_be_changed(fake: FakeApi) -> None:
    api = fake.client()
    api.may_write = lambda: False
    asked = {"spec": {"resourceAttributes": {"subresource": "exec"}}}
    assert api.ask(REVIEWS.path(), asked)["status"] == {"allowed": True}
    with pytest.raises(NotAllowedNowError):
        api.create(PODS.path("sweeps"), pod())


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpeconError, match="--kubeconfig"):
        KubeApi.load(str(tmp_path / "none"), None)


def test_a_server_that_is_asked_for_too_much_is_left_alone_for_longer_and_longer(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("controllers.worlds.argo.calls.api.time", SimpleNamespace(monotonic=lambda: now[0]))
    fake.store.put("nodes", node("n1"))
    fake.fault = lambda call: (429, "too many") if call.method == "PATCH" else None
    api = fake.client()
    asked = []
    for _ in range(200):
        now[0] += 1.0
        with pytest.raises(TooManyRequestsError):
            api.patch(NODES.path(None, "n1"), {})
        asked.append(len(fake.of("PATCH", "nodes")))
        assert api.get(NODES.path())["items"]  # what is only read has a rest of its own
    assert asked[-1] < 15
    fake.fault = lambda _: None
    now[0] += 31.0
    api.patch(NODES.path(None, "n1"), {})


def test_an_object_that_holds_too_much_is_left_out_of_its_list_by_name(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("controllers.worlds.argo.calls.api._MOST_PARTS", 200)
    for name in ("n1", "huge", "n3"):
        made = node(name)
        made["metadata"] = {"name": name, "namespace": "tenant"}
        made["spec"] = {"taints": [{} for _ in range(500)]} if name == "huge" else {}
        fake.store.put("nodes", made)
    with pytest.raises(TooLargeError):
        list(fake.client().pages(NODES.path(), {}, 3))
    found = [
        item["metadata"]["name"] for page in fake.client().pages(NODES.path(), {}, 1) for item in page.get("items", ())
    ]
    assert found == ["n1", "n3"]
    assert "tenant/huge" in caplog.text


@pytest.mark.parametrize(
    ("content", "token"),
    [
        (b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"abc"},"items":[[[', "abc"),
        (b'{"apiVersion":"x/v1","items":[[[],"kind":"WorkflowList","metadata":{"continue":"abc"}}\n', "abc"),
        (b'{"items":[{"metadata":{"continue":"forged"}}]}', None),
        (b"", None),
    ],
)
def test_the_metadata_of_a_list_are_found_where_the_rest_cannot_be_read(content: bytes, token: str | None) -> None:
    assert _list_metadata(content).get("continue") == token
