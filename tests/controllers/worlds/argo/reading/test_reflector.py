"""What survives between a watch and its API server."""

import threading
from collections.abc import Iterator

import pytest

from controllers.worlds.argo.calls.api import NODES, Json, KubeApi
from controllers.worlds.argo.calls.untrusted import text
from controllers.worlds.argo.reading.watch import Collection, Reflector
from tests.controllers.worlds.argo.conftest import TIMING, eventually
from tests.controllers.worlds.argo.fake_api import Call, FakeApi
from tests.controllers.worlds.argo.objects import node


def name_of(item: Json) -> str | None:
    name = text(item, "metadata", "name")
    return None if name == "hidden" else name


@pytest.fixture
def nodes(fake: FakeApi) -> Iterator[Reflector[str]]:
    for number in range(5):
        fake.store.put("nodes", node(f"n{number}"))
    reflector = Reflector(fake.client(), Collection(NODES.path(), page=2), name_of, lambda: None, TIMING)
    yield reflector
    reflector.stop()


def names(reflector: Reflector[str]) -> list[str]:
    return sorted(reflector.records())


def test_a_list_of_several_pages_is_read_whole(fake: FakeApi, nodes: Reflector[str]) -> None:
    nodes.start()
    assert nodes.wait_synced(10)
    assert names(nodes) == ["n0", "n1", "n2", "n3", "n4"]
    assert len([c for c in fake.calls if c.path == "/api/v1/nodes"]) == 3


def test_additions_changes_and_deletions_are_followed(fake: FakeApi, nodes: Reflector[str]) -> None:
    nodes.start()
    assert nodes.wait_synced(10)
    fake.store.put("nodes", node("n9"))
    fake.store.drop("nodes", "/n0")
    eventually(lambda: names(nodes) == ["n1", "n2", "n3", "n4", "n9"])


def test_what_is_of_no_interest_is_not_kept(fake: FakeApi, nodes: Reflector[str]) -> None:
    nodes.start()
    fake.store.put("nodes", node("hidden"))
    fake.store.put("nodes", node("last"))
    eventually(lambda: "last" in names(nodes))
    assert "hidden" not in names(nodes)


def test_changes_made_while_the_server_was_away_are_seen_without_another_list(
    fake: FakeApi, nodes: Reflector[str]
) -> None:
    nodes.start()
    assert nodes.wait_synced(10)
    lists = len([c for c in fake.calls if c.path == "/api/v1/nodes"])
    fake.restart(meanwhile=lambda: fake.store.drop("nodes", "/n3"))
    eventually(lambda: names(nodes) == ["n0", "n1", "n2", "n4"])
    assert len([c for c in fake.calls if c.path == "/api/v1/nodes"]) == lists


def test_a_version_that_is_gone_leads_to_a_new_list(fake: FakeApi, nodes: Reflector[str]) -> None:
    nodes.start()
    assert nodes.wait_synced(10)

    def meanwhile() -> None:
        fake.store.drop("nodes", "/n1")
        fake.store.compact()

    fake.restart(meanwhile)
    eventually(lambda: names(nodes) == ["n0", "n2", "n3", "n4"])
    fake.store.put("nodes", node("n7"))
    eventually(lambda: "n7" in names(nodes))


def test_errors_of_the_server_are_outlasted(fake: FakeApi, nodes: Reflector[str]) -> None:
    left = [500, 429, 503, 500]
    fake.fault = lambda call: (left.pop(), "not now") if left and call.path.startswith("/api/v1/nodes") else None
    nodes.start()
    assert nodes.wait_synced(10)
    assert not left
    assert len(names(nodes)) == 5


def test_a_refusal_is_kept_in_the_servers_words_until_it_is_lifted(fake: FakeApi, nodes: Reflector[str]) -> None:
    fake.fault = lambda _: (403, 'nodes is forbidden: User "x" cannot list resource "nodes"')
    nodes.start()
    eventually(lambda: nodes.refused)
    assert 'cannot list resource "nodes"' in str(nodes.refused)
    assert not nodes.synced
    fake.fault = lambda _: None
    assert nodes.wait_synced(10)
    eventually(lambda: nodes.refused is None)


def test_a_quiet_watch_is_known_to_be_alive(nodes: Reflector[str]) -> None:
    nodes.start()
    assert nodes.wait_synced(10)
    heard = nodes.heard_at
    eventually(lambda: nodes.heard_at > heard)


def test_nothing_is_heard_while_the_server_is_silent(fake: FakeApi, nodes: Reflector[str]) -> None:
    nodes.start()
    assert nodes.wait_synced(10)
    blocked, asked = threading.Event(), threading.Event()

    def fault(_call: Call) -> None:
        asked.set()
        blocked.wait(20)

    fake.fault = fault
    assert asked.wait(10)
    heard = nodes.heard_at
    fake.store.put("nodes", node("n8"))
    assert not threading.Event().wait(0.2)
    assert (nodes.heard_at, "n8" in names(nodes)) == (heard, False)
    blocked.set()
    eventually(lambda: "n8" in names(nodes))


def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(
    fake: FakeApi, nodes: Reflector[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    def wait_s(failures: int) -> float:
        waits.append(failures)
        return 0.01

    monkeypatch.setattr(nodes, "_wait_s", wait_s)
    fake.cut_watches.set()
    nodes.start()
    eventually(lambda: len(waits) > 3)
    assert waits[:3] == [1, 2, 3]


def test_stopping_does_not_wait_for_the_watch_to_end(fake: FakeApi) -> None:
    fake.store.put("nodes", node("n1"))
    api: KubeApi = fake.client()
    reflector = Reflector(api, Collection(NODES.path()), name_of, lambda: None)
    reflector.start()
    assert reflector.wait_synced(10)
    eventually(lambda: reflector._response is not None)
    reflector.stop()
    assert not reflector._thread.is_alive()
