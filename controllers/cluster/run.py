"""The composition root of the controller in a cluster: checks what it needs, puts the parts together, runs the loop."""

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict

from controllers.cluster.ability_watch import AbilityWatch
from controllers.cluster.campaign_run import CampaignRun, FlushableStore, SharedServices
from controllers.cluster.campaign_world import ForgetfulStore, ReportedUsage
from controllers.cluster.campaigns import Campaigns
from controllers.cluster.election import Election, LeaseTiming
from controllers.cluster.health import Health, HealthServer, MlflowProbe
from controllers.cluster.instruments import Instruments, MetricsServer
from controllers.cluster.leadership import AlwaysLeading, KubernetesLease, Leadership
from controllers.cluster.logs import configure_logs, fields
from controllers.cluster.loop import ControllerLoop
from controllers.cluster.node_kinds_file import read_node_kinds
from controllers.cluster.settings import ControllerSettings
from controllers.cluster.shared_cluster import SharedCluster, teller
from controllers.core.actions import Action
from controllers.core.errors import SpeconError
from controllers.core.ports import World
from controllers.policies.arbiter import Arbiter
from controllers.search import SearchQueue
from controllers.tracking.access import be_impatient, problem_with
from controllers.tracking.background import BackgroundReader
from controllers.tracking.client import CarefulClient
from controllers.tracking.tags import TagWriter
from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.meaning.view import Campaign, ClusterView
from controllers.worlds.argo.reading.watch import since_boot
from controllers.worlds.argo.world import ArgoWorld
from controllers.worlds.argo.writing.events import EventSink, EventWriter
from controllers.worlds.argo.writing.runs import RunOf
from controllers.worlds.argo.writing.state_store import ConfigMapStore

_LOG = logging.getLogger(__name__)
_PROBE_S = 15.0
_LAST_WRITES_S = 3.0
_ASKED_S = 5.0
"""Seconds that the loop waits at most for what the API server says of itself."""


class NoAccessError(SpeconError):
    """The API server cannot be reached, or does not let this process in."""


def run_controller(settings: ControllerSettings, stop: threading.Event) -> None:
    """Steer the sweeps of a cluster until ``stop`` is set.

    Raises:
        SpeconError: the API server cannot be reached, or a port is taken.
    """
    configure_logs(settings.log_format, settings.log_level)
    be_impatient()
    instruments = Instruments()
    with ExitStack() as stack:
        stack.enter_context(MetricsServer(settings.metrics_port, instruments))
        client = CarefulClient(settings.tracking_uri)
        probe = stack.enter_context(MlflowProbe(lambda: problem_with(client), instruments.mlflow_up.set, _PROBE_S))
        leadership = _leadership(settings)
        api = _access(settings)
        # Asked again before every call: what was decided while leading must not be done afterwards.
        api.may_write = lambda: leadership.leading and not settings.recommend
        given = read_node_kinds(settings.node_kinds)
        view = stack.enter_context(
            ClusterView(api, settings.namespaces or None, leave_by=settings.leave_by, given=given)
        )
        health = Health(time.monotonic, settings.stale_after, view.synced, view.age_s, lambda: probe.problem)
        checks = {"/livez": health.why_dead, "/readyz": health.why_unready}
        stack.enter_context(HealthServer(settings.health_port, checks))
        # After what may fail: a leader that cannot start would only keep others from leading.
        stack.enter_context(leadership)
        events = EventWriter(api)
        stack.callback(events.close)
        asked = KubeApi.load(settings.kubeconfig, settings.context, read_s=_ASKED_S)
        stack.callback(asked.close)
        abilities = AbilityWatch(asked, view, instruments, time.monotonic)
        cluster = SharedCluster(
            Arbiter(terms=settings.terms), time.monotonic, lambda: api.epoch() or time.time(), teller(view)
        )
        services = SharedServices(
            worlds=ArgoWorlds(view, events, lambda: abilities.found.can, recommend=settings.recommend),
            client=client,
            reader=stack.enter_context(BackgroundReader(settings.interval)),
            tags=stack.enter_context(TagWriter(client)),
            searches=stack.enter_context(SearchQueue()),
            instruments=instruments,
            leading=lambda: leadership.leading,
            epoch=lambda: api.epoch() or time.time(),
            interval=settings.interval,
            recommend=settings.recommend,
            why_no_shares=lambda: abilities.found.why_no_shares,
            cluster=None if settings.recommend else cluster,
        )
        campaigns = Campaigns(
            lambda campaign: CampaignRun(campaign, services),
            time.monotonic,
            instruments,
            services.leading,
            decide=bool if settings.recommend else cluster.decide,
        )
        loop = ControllerLoop(
            view=view,
            campaigns=campaigns,
            leadership=leadership,
            health=health,
            instruments=instruments,
            clock=time.monotonic,
            policy=settings.policy,
            stale_after=settings.stale_after,
            wait_for_writes=lambda: view.writes.wait_idle(_LAST_WRITES_S),
            look_at_cluster=abilities.look,
        )
        _LOG.info("started", extra=fields(**asdict(settings)))
        loop.run(stop)
        _LOG.info("stopped")


class ArgoWorlds:
    """Makes Argo worlds. A controller that only recommends keeps no state in the cluster."""

    def __init__(
        self, view: ClusterView, events: EventSink, can: Callable[[], frozenset[type[Action]]], *, recommend: bool
    ) -> None:
        self._view = view
        self._events = events
        self._can = can
        self._recommend = recommend

    def open(
        self, campaign: Campaign, now: Callable[[], float], run_of: RunOf, reports: ReportedUsage
    ) -> tuple[World, FlushableStore]:
        """Return world and state store of one of the view's campaigns."""
        world = ArgoWorld(
            self._view,
            campaign,
            events=self._events,
            run_of=run_of,
            cluster_can=self._can,
            hooked=reports.hooked,
            ends_soon=reports.ends_soon,
        )
        store = ForgetfulStore() if self._recommend else ConfigMapStore(self._view.api, campaign, now)
        return world, store


def _leadership(settings: ControllerSettings) -> Leadership | AlwaysLeading:
    if not settings.leader_elect:
        return AlwaysLeading()
    timing = LeaseTiming()
    # Access of its own: a renewal must not wait behind other calls, nor longer than the lease allows.
    api = KubeApi.load(settings.kubeconfig, settings.context, read_s=timing.deadline / 2)
    identity = f"{os.uname().nodename}_{uuid.uuid4().hex[:12]}"
    store = KubernetesLease(api, settings.lease_namespace, settings.lease_name)
    return Leadership(Election(identity, timing, since_boot), store)


def _access(settings: ControllerSettings) -> KubeApi:
    api = KubeApi.load(settings.kubeconfig, settings.context)
    try:
        api.get("/version")
    except ApiError as error:
        message = (
            f"cannot use the API server {api.host}: {error}\n"
            "In a cluster, give the pod a service account (manifests/ does); elsewhere, name a working "
            "--kubeconfig and --context, as for kubectl"
        )
        raise NoAccessError(message) from error
    return api
