"""The settings of a controller: checked once at its start, frozen, every problem named at once."""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from controllers.cluster.node_kinds_file import NodeKindsError, read_node_kinds
from controllers.core.errors import SpeconError
from controllers.policies.arbiter.demands import Terms
from controllers.policies.kit.settings import PolicyError
from controllers.policies.registry import parse_policy
from controllers.worlds.argo.calls.grants import LeaveBy

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_MOST_PORT = 65535
_LEAST_INTERVAL_S = 0.5
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


class ControllerSettingsError(SpeconError):
    """The controller cannot run with its settings; the message lists every problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """All settings. Times are in seconds.

    ``namespaces`` is empty for all. ``interval`` lies between two looks at a sweep in which nothing changes, and
    between two queries of MLflow. After ``stale_after`` without news from the API server the controller does nothing.
    ``leave_by`` is how trials are asked to leave, ``node_kinds`` the file that says what nodes can come, if any does.
    ``terms`` is what the platform grants each namespace of the cluster.
    """

    namespaces: tuple[str, ...]
    policy: str
    interval: float
    tracking_uri: str
    recommend: bool
    leader_elect: bool
    lease_name: str
    lease_namespace: str
    health_port: int
    metrics_port: int
    stale_after: float
    log_format: Literal["json", "text"]
    log_level: str
    leave_by: LeaveBy = "auto"
    node_kinds: str = ""
    terms: Terms = field(default_factory=dict)
    kubeconfig: str | None = None
    context: str | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            message = "the controller cannot start:\n" + "\n".join(f"  {problem}" for problem in problems)
            raise ControllerSettingsError(message)

    def _problems(self) -> Iterator[str]:
        yield from self._bad_names()
        yield from self._bad_numbers()
        try:
            parse_policy(self.policy)
        except PolicyError as error:
            yield f"--policy {self.policy!r}: {error}; see what there is with: specon policies"
        try:
            read_node_kinds(self.node_kinds)
        except NodeKindsError as error:
            yield f"--node-kinds: {error}"
        if not self.tracking_uri.strip():
            yield "--mlflow-tracking-uri is missing: name the MLflow server of the sweeps, such as http://mlflow:5000"

    def _bad_names(self) -> Iterator[str]:
        for namespace in (*self.namespaces, self.lease_namespace):
            if not _DNS_LABEL.fullmatch(namespace):
                yield (
                    f"{namespace!r} is no name of a namespace: 1 to 63 of a-z, 0-9 and -, "
                    "beginning and ending with a letter or digit"
                )
        if not _DNS_NAME.fullmatch(self.lease_name):
            yield f"--lease-name {self.lease_name!r} is no name of an object: up to 253 of a-z, 0-9, - and ."

    def _bad_numbers(self) -> Iterator[str]:
        if not (math.isfinite(self.interval) and self.interval >= _LEAST_INTERVAL_S):
            yield f"--interval {self.interval:g} is too short: give at least {_LEAST_INTERVAL_S:g} seconds"
        if not (math.isfinite(self.stale_after) and self.stale_after > 0):
            yield f"--stale-after {self.stale_after:g} is no time: give seconds above 0"
        for name, port in (("--health-port", self.health_port), ("--metrics-port", self.metrics_port)):
            if not 0 < port <= _MOST_PORT:
                yield f"{name} {port} is no port: give 1 to {_MOST_PORT}"
        if self.health_port == self.metrics_port:
            yield f"--health-port and --metrics-port are both {self.health_port}: give two different ports"


def own_namespace(environ: Mapping[str, str] = os.environ, file: Path = _NAMESPACE_FILE) -> str:
    """Return the namespace that this process runs in; ``default`` outside a cluster."""
    if environ.get("POD_NAMESPACE"):
        return environ["POD_NAMESPACE"]
    return file.read_text(encoding="utf-8").strip() if file.exists() else "default"
