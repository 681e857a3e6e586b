"""``specon controller``: what runs in a cluster and steers its sweeps."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from controllers.cluster.namespace_terms import read_terms
from controllers.cluster.settings import LOG_LEVELS, ControllerSettings, ControllerSettingsError, own_namespace
from controllers.driving.stop_signals import stop_on_signals
from controllers.policies.kit.settings import DEFAULT_POLICY
from controllers.worlds.argo.calls.grants import LEAVE_BY
from hera_specon.cli.backend import Backend, run_controller

PREFIX = "SPECON_CONTROLLER"
_Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def _option(*names: str, **attributes: Any) -> _Decorator:  # noqa: ANN401 - click's own
    return click.option(*names, show_envvar=True, **{"show_default": True, **attributes})


def _split(_ctx: click.Context, _param: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    """Return the names in ``given``, where one text may hold several with commas between."""
    names = [name.strip() for names in given for name in names.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


@click.command(
    short_help="Steer the sweeps of a Kubernetes cluster, from within it.",
    context_settings={"auto_envvar_prefix": PREFIX},
)
@_option(
    "--namespace", multiple=True, callback=_split, help="Namespaces of sweeps, separated by commas.  [default: its own]"
)
@_option("--all-namespaces", is_flag=True, help="Steer the sweeps of every namespace.")
@_option("--policy", default=DEFAULT_POLICY, metavar="SPEC", help="Policy of sweeps that name none.")
@_option("--interval", type=float, default=5.0, metavar="SECONDS", help="Longest time between decisions on a sweep.")
@_option(
    "--mlflow-tracking-uri",
    envvar=[f"{PREFIX}_MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_URI"],
    default="",
    metavar="URI",
    help="MLflow server that the sweeps log to.",
)
@_option("--recommend", is_flag=True, help="Decide and report, but act on nothing.")
@_option("--leader-elect/--no-leader-elect", default=True, help="Act only while holding the lease.")
@_option("--lease-name", default="specon-controller", metavar="NAME", help="Lease that replicas compete for.")
@_option(
    "--lease-namespace",
    default=None,
    metavar="NAMESPACE",
    help="Its namespace.  [default: the controller's own]",
)
@_option("--health-port", type=int, default=8081, metavar="PORT", help="Serves /livez and /readyz.")
@_option("--metrics-port", type=int, default=8080, metavar="PORT", help="Serves /metrics for Prometheus.")
@_option(
    "--stale-after",
    type=float,
    default=45.0,
    metavar="SECONDS",
    help="Stop acting if the API server has not answered for this long.",
)
@_option(
    "--leave-by",
    type=click.Choice(LEAVE_BY),
    default="auto",
    help="How trials are asked to save and leave: by exec where the account may.",
)
@_option(
    "--node-kinds", default="", metavar="FILE", help="YAML file: the kinds of nodes that can come, and what nodes cost."
)
@_option(
    "--shares",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help="YAML with the weight, priority and quota of each namespace.",
)
@_option(
    "--log-format",
    type=click.Choice(["json", "text"]),
    default="json",
    help="For machines or for people.",
)
@_option("--log-level", type=click.Choice(LOG_LEVELS), default="info", help="Lowest level to log.")
@_option("--kubeconfig", default=None, metavar="FILE", help="Kubeconfig, to run outside the cluster.")
@_option("--context", default=None, metavar="NAME", help="Context in the kubeconfig.")
@click.pass_obj
def controller(backend: Backend | None, /, **options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Steer the sweeps of a Kubernetes cluster that runs Argo Workflows.

    The controller watches the pods of trials and the metrics they log to MLflow, resizes pods in place,
    and moves trials between nodes. Each option has an environment variable, which manifests/ uses. You
    can stop it at any time: it keeps its state in the cluster and in MLflow.

    \b
    Examples:
      specon controller --mlflow-tracking-uri http://mlflow:5000 --recommend --log-format text
      specon controller --all-namespaces --policy specon:interval=30+flowcon
    """  # noqa: D301 - \b keeps click from filling the lines after it
    settings = _settings(**options)
    with stop_on_signals() as stop:
        (backend.run_controller if backend else run_controller)(settings, stop)


def _settings(
    *,
    namespace: tuple[str, ...],
    all_namespaces: bool,
    mlflow_tracking_uri: str,
    lease_namespace: str | None,
    shares: Path | None,
    **rest: Any,  # noqa: ANN401 - checked by the settings
) -> ControllerSettings:
    if namespace and all_namespaces:
        message = f"--all-namespaces and --namespace {','.join(namespace)} exclude each other: give one of them"
        raise ControllerSettingsError(message)
    own = own_namespace(os.environ)
    return ControllerSettings(
        namespaces=() if all_namespaces else namespace or (own,),
        tracking_uri=mlflow_tracking_uri,
        lease_namespace=lease_namespace or own,
        terms={} if shares is None else read_terms(shares),
        **rest,
    )
