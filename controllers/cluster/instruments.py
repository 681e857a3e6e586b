"""The controller's metrics for Prometheus. No label names a trial, a sweep or a node: their number has no bound."""

from collections.abc import Mapping
from typing import Self

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector
from prometheus_client import start_http_server as serve

from controllers.cluster.health import PortError, port_problem
from controllers.core.actions import ACTION_KINDS, Action
from controllers.core.model import Phase
from controllers.core.ports import OutcomeKind
from controllers.worlds.argo.meaning.abilities import Abilities

_TICK_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Instruments:
    """The controller's metrics, in a registry of their own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.ticks = Counter("specon_ticks", "Looks taken at a sweep, each with a decision.", registry=registry)
        self.tick_duration = Histogram(
            "specon_tick_duration_seconds",
            "Time of one look: reading, deciding, acting.",
            buckets=_TICK_BUCKETS,
            registry=registry,
        )
        self.trials = Gauge("specon_trials", "Trials by phase.", ["phase"], registry=registry)
        self.moves = Gauge("specon_moves_in_progress", "Trials on their way between nodes.", registry=registry)
        self.actions = Counter(
            "specon_actions",
            "Actions wanted by policies, by kind and by what became of them.",
            ["kind", "outcome"],
            registry=registry,
        )
        self.campaigns = Gauge("specon_campaigns", "Sweeps under one policy that are steered now.", registry=registry)
        self.failing = Gauge("specon_campaigns_failing", "Those that are backed off after an error.", registry=registry)
        self.errors = Counter("specon_campaign_errors", "Errors that ended the look at a sweep.", registry=registry)
        self.silent = Gauge("specon_trials_without_objective", "Trials that never log it.", registry=registry)
        self.stale = Counter("specon_stale_looks", "Looks not taken: the view was too old.", registry=registry)
        self.leader = Gauge("specon_is_leader", "1 where this replica leads.", registry=registry)
        self.watch_age = Gauge(
            "specon_watch_age_seconds", "Time since the API server was last heard.", registry=registry
        )
        self.mlflow_up = Gauge("specon_mlflow_up", "1 where MLflow answers.", registry=registry)
        self.cluster = Gauge(
            "specon_cluster_info",
            "1: versions of what the cluster is made of, and whether shares of running trials can be changed.",
            ["kubernetes", "argo", "shares"],
            registry=registry,
        )
        self.old_nodes = Gauge(
            "specon_nodes_without_resize", "Nodes whose kubelet changes no running trial's share.", registry=registry
        )
        # Every label shows from the start, so that a rate over a counter sees its first increment.
        for phase in Phase:
            self.trials.labels(phase.value)
        for kind in ACTION_KINDS:
            for outcome in OutcomeKind:
                self.actions.labels(kind.__name__.lower(), outcome.value)

    def acted(self, action: Action, outcome: OutcomeKind) -> None:
        """Count an action that a policy wanted."""
        self.actions.labels(type(action).__name__.lower(), outcome.value).inc()

    def show_abilities(self, found: Abilities) -> None:
        """Show what the cluster can do, in place of what it could before."""
        self.cluster.clear()
        shares = "no" if found.why_no_shares else "yes"
        self.cluster.labels(str(found.kubernetes or "unknown"), str(found.argo or "unknown"), shares).set(1)
        self.old_nodes.set(len(found.old_nodes))

    def show_trials(self, phases: Mapping[Phase, int]) -> None:
        """Show how many trials are in each phase."""
        for phase in Phase:
            self.trials.labels(phase.value).set(phases.get(phase, 0))
        self.moves.set(phases.get(Phase.MOVING, 0))


class MetricsServer:
    """Serves /metrics.

    Raises:
        PortError: the port is taken, or not allowed.
    """

    def __init__(self, port: int, instruments: Instruments) -> None:
        try:
            self._server, self._thread = serve(port, registry=instruments.registry)
        except OSError as error:
            raise PortError(port_problem("metrics", port, error)) from error

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
