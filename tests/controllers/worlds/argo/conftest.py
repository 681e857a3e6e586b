"""A fake API server, and a world over it whose execs are noted down instead of made."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from controllers.core.model import Trial, TrialId
from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import UnavailableError
from controllers.worlds.argo.calls.grants import LeaveBy
from controllers.worlds.argo.deciding.planner import Timeouts
from controllers.worlds.argo.meaning.view import ClusterView
from controllers.worlds.argo.reading.pods import PodRecord
from controllers.worlds.argo.reading.watch import WatchTiming
from controllers.worlds.argo.world import ArgoWorld
from controllers.worlds.argo.writing import pod_changes
from controllers.worlds.argo.writing.runs import RunOf
from tests.controllers.worlds.argo.fake_api import FakeApi, Json
from tests.controllers.worlds.argo.objects import BEGAN, NAMESPACE, WORKFLOW, node, trial, workflow

TIMING = WatchTiming(watch_s=1.0, first_wait_s=0.01, most_wait_s=0.05)


def eventually(condition: Callable[[], object], within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    server = FakeApi()
    yield server
    server.close()


@dataclass
class Told:
    """Events as they were told."""

    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def tell(self, pod: PodRecord, reason: str, note: str, *, warning: bool = False) -> None:
        del pod, warning
        self.reasons.append(reason)
        self.notes.append(note)


@dataclass
class Pods:
    """Execs in pods: what was run, in the order of running; ``deaf`` ones can't be reached."""

    commands: list[tuple[str, str]] = field(default_factory=list)
    unreachable: bool = False

    def execute(self, _api: KubeApi, pod: PodRecord, command: tuple[str, ...]) -> None:
        self.commands.append((pod.name, command[0]))
        if self.unreachable:
            message = "the kubelet does not answer"
            raise UnavailableError(message)


class Bench:
    """A world of one workflow on nodes n1 and n2 of one core each."""

    def __init__(self, fake: FakeApi, pods: Pods, stack: ExitStack) -> None:
        self.fake = fake
        self.pods = pods
        self.told = Told()
        self.ahead_s = 0.0
        self._stack = stack
        self.put("workflows", workflow())
        self.put("nodes", node("n1"))
        self.put("nodes", node("n2"))

    def put(self, collection: str, item: Json) -> Json:
        return self.fake.store.put(collection, item)

    def begin(
        self,
        timeouts: Timeouts | None = None,
        run_of: RunOf = lambda *_, **__: "",
        *,
        leave_by: LeaveBy = "auto",
        hooked: Callable[[TrialId], bool] = lambda _: True,
        ends_soon: Callable[[TrialId], bool] = lambda _: False,
    ) -> ArgoWorld:
        """Start a world, as a controller that knows nothing does."""
        api = self.fake.client()
        self._stack.callback(api.close)
        self.view = self._stack.enter_context(ClusterView(api, [NAMESPACE], TIMING, leave_by=leave_by))
        assert self.view.wait_synced(10)
        (campaign,) = self.view.campaigns("default")
        waits = timeouts or Timeouts()
        self.world = ArgoWorld(
            self.view,
            campaign,
            events=self.told,
            timeouts=waits,
            run_of=run_of,
            hooked=hooked,
            ends_soon=ends_soon,
        )
        return self.world

    def until(self, condition: Callable[[], object]) -> None:
        """Drive the world until ``condition`` holds."""

        def step() -> object:
            self.world.advance(time.time() - BEGAN + self.ahead_s)
            return condition()

        eventually(step)

    def settle(self) -> None:
        """Drive the world until it has seen everything and wants nothing more."""
        version = self.fake.store.version
        self.until(lambda: self.view.writes.wait_idle(5))
        time.sleep(0.1)
        self.until(lambda: self.view.writes.wait_idle(5))
        if self.fake.store.version != version:
            self.settle()

    def trial(self, name: str = "a") -> Trial:
        found = self.world.trial(TrialId(trial(name)))
        assert found is not None
        return found

    def pod(self, name: str = "a", attempt: int = 0) -> Json | None:
        return self.fake.store.objects["pods"].get(f"{NAMESPACE}/{WORKFLOW}-{name}-{attempt}")

    def change(self, collection: str, key: str, **changes: object) -> None:
        self.put(collection, {**self.fake.store.objects[collection][key], **changes})


@pytest.fixture
def pods(monkeypatch: pytest.MonkeyPatch) -> Pods:
    found = Pods()
    monkeypatch.setattr(pod_changes, "execute", found.execute)
    return found


@pytest.fixture
def bench(fake: FakeApi, pods: Pods) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(fake, pods, stack)
