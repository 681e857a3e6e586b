"""A controller put together as ``controllers/cluster/run.py`` does it, over ports that a test brings along."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

from mlflow.tracking import MlflowClient

from controllers.cluster.campaign_run import CampaignRun, SharedServices, Worlds
from controllers.cluster.campaigns import Campaigns
from controllers.cluster.health import Health
from controllers.cluster.instruments import Instruments
from controllers.cluster.leadership import AlwaysLeading
from controllers.cluster.loop import ControllerLoop
from controllers.search import SearchQueue
from controllers.tracking.background import BackgroundReader
from controllers.tracking.tags import TagWriter
from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.meaning.view import ClusterView
from controllers.worlds.argo.reading.watch import WatchTiming

POLL_S = 1.0
STALE_S = 45.0


class Clock(Protocol):
    """What is asked of the module ``time``, or of whatever stands in for it."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    def time(self) -> float:
        """Return Unix seconds."""
        ...


@dataclass(frozen=True)
class Ports:
    """What a controller leans on. ``worlds`` makes the worlds of its campaigns, over the view that it is given."""

    api: KubeApi
    client: MlflowClient
    namespaces: Sequence[str]
    worlds: Callable[[ClusterView], Worlds]
    clock: Clock
    timing: WatchTiming


@contextmanager
def whole_controller(ports: Ports) -> Iterator[tuple[ControllerLoop, ClusterView]]:
    """Start all threads of a controller that leads; yield its loop, which the test drives, and its view."""
    instruments = Instruments()
    with ExitStack() as stack:
        view = stack.enter_context(ClusterView(ports.api, ports.namespaces, ports.timing))
        services = SharedServices(
            worlds=ports.worlds(view),
            client=ports.client,
            reader=stack.enter_context(BackgroundReader(POLL_S)),
            tags=stack.enter_context(TagWriter(ports.client)),
            searches=stack.enter_context(SearchQueue()),
            instruments=instruments,
            leading=lambda: True,
            epoch=ports.clock.time,
            interval=POLL_S,
            recommend=False,
        )
        monotonic = ports.clock.monotonic
        loop = ControllerLoop(
            view=view,
            campaigns=Campaigns(
                lambda campaign: CampaignRun(campaign, services), monotonic, instruments, services.leading
            ),
            leadership=AlwaysLeading(),
            health=Health(monotonic, STALE_S, view.synced, view.age_s, lambda: None),
            instruments=instruments,
            clock=monotonic,
            policy="default",
            stale_after=STALE_S,
            wait_for_writes=lambda: None,
            look_at_cluster=lambda: None,
        )
        yield loop, view
