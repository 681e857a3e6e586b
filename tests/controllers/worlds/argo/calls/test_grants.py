"""What the controller's account may do is asked of the API server, and decides how trials are asked to leave."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controllers.worlds.argo.calls import grants
from controllers.worlds.argo.calls.grants import GrantReviews, Grants, LeaveBy
from tests.controllers.worlds.argo.conftest import eventually
from tests.controllers.worlds.argo.fake_api import FakeApi


@contextmanager
def reviews(fake: FakeApi, *namespaces: str | None, leave_by: LeaveBy = "auto") -> Iterator[GrantReviews]:
    made = GrantReviews(fake.client(), namespaces, leave_by, lambda: None)
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize(
    ("denied", "found"),
    [
        (set(), Grants(signals=True, evicts=True)),
        ({"exec"}, Grants(signals=False, evicts=True)),
        ({"exec", "eviction"}, Grants(signals=False, evicts=False)),
    ],
    ids=["all", "no-exec", "neither"],
)
def test_what_is_granted_is_asked_for_each_namespace(fake: FakeApi, denied: set[str], found: Grants) -> None:
    fake.denied = denied
    with reviews(fake, "a", "b") as asked:
        eventually(lambda: asked.synced)
        assert (asked.of("a"), asked.of("b")) == (found, found)
    assert set(fake.reviewed) == {"a", "b"}


def test_a_controller_of_all_namespaces_asks_for_all_at_once(fake: FakeApi) -> None:
    fake.denied = {"exec"}
    with reviews(fake, None) as asked:
        eventually(lambda: asked.synced)
        assert not asked.of("whatever").signals
    assert set(fake.reviewed) == {None}


@pytest.mark.parametrize(("leave_by", "signals"), [("exec", True), ("annotation", False)])
def test_a_setting_goes_before_what_is_granted(fake: FakeApi, leave_by: LeaveBy, *, signals: bool) -> None:
    fake.denied = {"exec"} if signals else set()
    with reviews(fake, "a", leave_by=leave_by) as asked:
        eventually(lambda: asked.synced)
        assert asked.of("a").signals is signals


def test_it_is_asked_again_now_and_then(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "AGAIN_S", 0.01)
    with reviews(fake, "a") as asked:
        eventually(lambda: asked.synced)
        fake.denied = {"exec"}
        eventually(lambda: not asked.of("a").signals)


def test_while_the_api_server_does_not_answer_nothing_is_known(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "_AFTER_FAILURE_S", 0.01)
    fake.no_reviews = (500, "later")
    with reviews(fake, "a") as asked:
        eventually(lambda: fake.port and not asked.synced)
        fake.no_reviews = None
        eventually(lambda: asked.synced)


def test_an_account_that_may_not_ask_is_taken_for_one_with_the_roles_of_the_manifests(fake: FakeApi) -> None:
    fake.no_reviews = (403, "selfsubjectaccessreviews is forbidden")
    with reviews(fake, "a") as asked:
        eventually(lambda: asked.synced)
        assert asked.of("a") == Grants(signals=True, evicts=True)
