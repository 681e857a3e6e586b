"""A controller in a process of its own, over an API server that a test runs; it tells what it needed.

    python -m tests.hostile_tenants.steered PORT NAMESPACE...

It leads for a few seconds from its start, which is when it lists every object there is, and prints a line of JSON.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

from kubernetes import client
from mlflow.tracking import MlflowClient

from controllers.cluster.campaign_run import FlushableStore
from controllers.cluster.campaign_world import ReportedUsage
from controllers.core.ports import World
from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.meaning.view import Campaign, ClusterView
from controllers.worlds.argo.reading.watch import WatchTiming
from controllers.worlds.argo.world import ArgoWorld
from controllers.worlds.argo.writing.runs import RunOf
from controllers.worlds.argo.writing.state_store import ConfigMapStore
from tests.controllers.cluster.whole_controller import Ports, whole_controller
from tests.controllers.worlds.argo.conftest import Told
from tests.controllers.worlds.argo.fake_api import Store
from tests.interleavings.checks import Checks
from tests.interleavings.perils import Perils
from tests.interleavings.steps import Steps
from tests.interleavings.tracker import Tracker, TrackerClient

LEADS_FOR_S: Final = 4.0
_SYNCED_WITHIN_S: Final = 60.0
_PAUSE_S: Final = 0.1
_KIB_IN_MIB: Final = 1024


@dataclass(frozen=True)
class Needed:
    """What a controller needed: memory at its peak beyond its imports, threads at most, its longest round of the loop.

    ``steered`` counts the campaigns that it began, by namespace.
    """

    grown_mib: float
    threads: int
    longest_round_s: float
    rounds: int
    steered: dict[str, int]

    @classmethod
    def told(cls, line: str) -> "Needed":
        """Read what a controller printed."""
        return cls(**json.loads(line))


class CountedWorlds:
    """Makes the worlds of campaigns, and counts them by namespace."""

    def __init__(self, view: ClusterView, begun: dict[str, int]) -> None:
        self._view = view
        self._begun = begun

    def open(
        self, campaign: Campaign, now: Callable[[], float], run_of: RunOf, reports: ReportedUsage
    ) -> tuple[World, FlushableStore]:
        """Return world and state store of a campaign."""
        self._begun[campaign.namespace] = self._begun.get(campaign.namespace, 0) + 1
        world = ArgoWorld(self._view, campaign, events=Told(), run_of=run_of, hooked=reports.hooked)
        return world, ConfigMapStore(self._view.api, campaign, now)


def lead(api: KubeApi, namespaces: list[str]) -> Needed:
    """Be a controller for a few seconds; return what that needed."""
    begun: dict[str, int] = {}
    before_mib = _peak_mib()
    timing = WatchTiming(watch_s=2.0, first_wait_s=0.05, most_wait_s=0.5)
    ports = Ports(api, _tracker(), namespaces, lambda view: CountedWorlds(view, begun), time, timing)
    threads, longest, rounds = 0, 0.0, 0
    with whole_controller(ports) as (loop, view):
        assert view.wait_synced(_SYNCED_WITHIN_S), view.refusals()
        end = time.monotonic() + LEADS_FOR_S
        while (began := time.monotonic()) < end:
            loop.once()
            longest, rounds = max(longest, time.monotonic() - began), rounds + 1
            threads = max(threads, threading.active_count())
            view.wait_for_news(_PAUSE_S)
        grown_mib = _peak_mib() - before_mib
    return Needed(grown_mib, threads, longest, rounds, begun)


def _peak_mib() -> float:
    """Return the most memory that this program had; getrusage would count what started it, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / _KIB_IN_MIB


def _tracker() -> MlflowClient:
    """Return an MLflow that answers at once and never fails."""
    perils = Perils(Steps(0), crash_at=0)
    perils.calm = True
    return cast("MlflowClient", TrackerClient(Tracker(lambda: 0.0), perils, Checks(Store())))


def main() -> None:
    """Lead, and print what that needed."""
    port, *namespaces = sys.argv[1:]
    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{port}"
    api = KubeApi(configuration)
    needed = lead(api, namespaces)
    print(json.dumps(asdict(needed)), flush=True)  # noqa: T201 - for the test that started it


if __name__ == "__main__":
    main()
