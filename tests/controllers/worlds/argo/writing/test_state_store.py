"""The engine's state in a ConfigMap."""

import base64
import random
from collections.abc import Callable

import pytest

from controllers.core import labels
from controllers.worlds.argo.calls.errors import ApiError, UnavailableError
from controllers.worlds.argo.meaning.view import Campaign
from controllers.worlds.argo.writing.state_store import ConfigMapStore
from tests.controllers.worlds.argo.fake_api import FakeApi, Json
from tests.controllers.worlds.argo.objects import BEGAN, NAMESPACE, UID, WORKFLOW, workflow


class Time:
    now = 0.0


@pytest.fixture
def store(fake: FakeApi) -> Callable[[], ConfigMapStore]:
    return lambda: made(fake)


def made(
    fake: FakeApi, policy: str = "specon", now: Time | None = None, annotations: dict[str, str] | None = None
) -> ConfigMapStore:
    campaign = Campaign(NAMESPACE, WORKFLOW, UID, UID, policy, BEGAN, False, {}, annotations or {}, True)  # noqa: FBT003
    clock = now or Time()
    return ConfigMapStore(fake.client(), campaign, lambda: clock.now)


def kept(fake: FakeApi) -> Json:
    (found,) = fake.store.objects["configmaps"].values()
    return found


def writes(fake: FakeApi) -> int:
    return len([call for call in fake.calls if call.method in {"POST", "PUT"}])


def state(text: str) -> Callable[[], str]:
    return lambda: text


def test_there_is_no_state_at_the_first_start(store: Callable[[], ConfigMapStore]) -> None:
    assert store().load() is None


def test_an_urgent_state_is_there_for_the_next_controller(fake: FakeApi, store: Callable[[], ConfigMapStore]) -> None:
    first = store()
    for number in range(3):
        first.save(state(f'{{"n": {number}}}'), urgent=True)
    assert store().load() == '{"n": 2}'
    assert kept(fake)["metadata"]["ownerReferences"][0]["uid"] == UID
    assert kept(fake)["metadata"]["labels"] == {"hera-specon.io/state": WORKFLOW}


def test_a_state_that_is_not_urgent_is_written_every_ten_seconds(fake: FakeApi) -> None:
    clock = Time()
    store = made(fake, now=clock)
    for second in range(25):
        clock.now = float(second)
        store.save(state(f'{{"n": {second}}}'), urgent=False)
    assert writes(fake) == 3
    assert made(fake).load() == '{"n": 20}'
    store.flush()
    assert made(fake).load() == '{"n": 24}'


def test_a_state_that_has_not_changed_is_not_written_again(fake: FakeApi) -> None:
    store = made(fake)
    for _ in range(5):
        store.save(state("{}"), urgent=True)
    assert writes(fake) == 1


def test_each_policy_of_a_workflow_has_its_own_state(fake: FakeApi) -> None:
    made(fake, "specon").save(state("1"), urgent=True)
    made(fake, "flowcon").save(state("2"), urgent=True)
    assert (made(fake, "specon").load(), made(fake, "flowcon").load()) == ("1", "2")


def test_conflicts_and_deletions_are_survived(fake: FakeApi, store: Callable[[], ConfigMapStore]) -> None:
    first, second = store(), store()
    first.save(state("1"), urgent=True)
    second.save(state("2"), urgent=True)
    first.save(state("3"), urgent=True)
    assert store().load() == "3"
    fake.store.drop("configmaps", f"{NAMESPACE}/{first.name}")
    first.save(state("4"), urgent=True)
    assert store().load() == "4"


def test_an_urgent_state_that_can_not_be_kept_is_an_error_and_another_waits(fake: FakeApi) -> None:
    store = made(fake)
    fake.fault = lambda _: (503, "not now")
    with pytest.raises(UnavailableError):
        store.save(state("1"), urgent=True)
    store.save(state("2"), urgent=False)
    fake.fault = lambda _: None
    store.flush()
    assert made(fake).load() == "2"


def test_two_controllers_at_once_are_noticed(fake: FakeApi) -> None:
    made(fake).save(state("1"), urgent=True)
    fake.fault = lambda call: (409, "changed") if call.method in {"PUT", "POST"} else None
    with pytest.raises(ApiError, match="does another controller run"):
        made(fake).save(state("2"), urgent=True)


def told(fake: FakeApi) -> str:
    """Return what the workflow says of states that are not kept."""
    (shown,) = fake.store.objects["workflows"].values()
    return "".join(
        text for name, text in shown["metadata"]["annotations"].items() if name.startswith(labels.ANNOTATION_UNSAVED)
    )


NOISE = random.Random(1).randbytes(1_000_000).hex()  # noqa: S311 - noise does not compress
TOO_LARGE = {
    "bytes when packed": f'"{NOISE}"',
    "values": "[" + ",".join("1" * 1_000_001) + "]",
    "bytes,": '"' + "x" * (16 * 2**20) + '"',
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_a_state_that_could_not_be_read_again_is_not_written_and_the_workflow_says_so_as_long(
    fake: FakeApi, what: str
) -> None:
    fake.store.put("workflows", workflow())
    clock = Time()
    store = made(fake, now=clock)
    store.save(state('"small"'), urgent=True)
    assert not told(fake)
    store.save(state(TOO_LARGE[what]), urgent=True)
    assert what in told(fake)
    assert "split the sweep into several workflows" in told(fake)
    assert made(fake).load() == '"small"'
    clock.now = 10.0
    store.save(state('"small again"'), urgent=True)
    assert not told(fake)
    assert made(fake).load() == '"small again"'


def test_who_starts_again_takes_back_what_was_said_of_a_state_that_is_kept_now(fake: FakeApi) -> None:
    fake.store.put("workflows", workflow())
    made(fake).save(state(TOO_LARGE["values"]), urgent=True)
    (shown,) = fake.store.objects["workflows"].values()
    again = made(fake, annotations=shown["metadata"]["annotations"])
    again.save(state("{}"), urgent=True)
    assert not told(fake)


def test_a_state_is_kept_though_the_workflow_cannot_be_told(fake: FakeApi) -> None:
    fake.store.put("workflows", workflow())
    fake.fault = lambda call: (403, "no") if call.method == "PATCH" else None
    store = made(fake)
    store.save(state(TOO_LARGE["values"]), urgent=True)
    fake.fault = lambda _: None
    store.flush()
    store.save(state(TOO_LARGE["values"]), urgent=False)
    store.flush()
    assert "values" in told(fake)


@pytest.mark.parametrize("content", ["!!", base64.b64encode(b"no gzip").decode(), None, 7])
def test_a_broken_state_counts_as_none(fake: FakeApi, content: object) -> None:
    store = made(fake)
    store.save(state("1"), urgent=True)
    fake.store.put("configmaps", {**kept(fake), "binaryData": {"state": content}})
    assert made(fake).load() is None
