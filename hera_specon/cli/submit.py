"""``specon submit``: a sweep on a cluster."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from controllers.worlds.argo.api import UnavailableError
from controllers.worlds.argo.untrusted import text
from hera_specon.cli.backend import check_parameters
from hera_specon.cli.group import Failure
from hera_specon.cli.options import assignments, cluster_options
from hera_specon.cluster.channel import ArgoServerError

if TYPE_CHECKING:
    from hera_specon.cluster.access import Access
    from hera_specon.cluster.channel import Channel, Created
    from hera_specon.submission.edits import Wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    file: Path
    namespace: str | None
    kubeconfig: str | None
    context: str | None
    argo_server: str | None
    token_file: Path | None
    certificate_authority: str | None
    insecure_skip_tls_verify: bool
    parameters: Mapping[str, str]
    policy: str | None
    image: str | None
    mlflow_tracking_uri: str | None
    gate_first: bool
    first_nodes_of: str | None
    wait: bool
    as_json: bool
    dry_run: bool


@click.command(short_help="Send a sweep to a cluster that runs Argo Workflows.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cluster_options
@click.option(
    "--argo-server", metavar="URL", help="Submit through Argo Server, such as https://argo.lab:2746, by a token."
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the token for Argo Server.  [default: the environment variable ARGO_TOKEN]",
)
@click.option(
    "--certificate-authority",
    type=click.Path(exists=True, dir_okay=False),
    help="File with the authority that signed Argo Server's certificate.",
)
@click.option(
    "--insecure-skip-tls-verify", is_flag=True, help="Don't check Argo Server's certificate; let a token go over http."
)
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    callback=assignments,
    metavar="NAME=VALUE",
    help="Value for a parameter of the workflow. Can be given several times.",
)
@click.option("--policy", metavar="NAME[:PARAM=VALUE,...][+...]", help="Policy to run under instead of the author's.")
@click.option("--image", help="Image of the trials instead of the author's.")
@click.option("--mlflow-tracking-uri", metavar="URL", help="Where the trials find MLflow, instead of the author's.")
@click.option("--gate-first", is_flag=True, help="Let the controller place first attempts too: it must be running.")
@click.option(
    "--first-nodes-of",
    metavar="WORKFLOW",
    help="Start each trial on the node where it first ran in this earlier workflow, to compare two policies fairly.",
)
@click.option("--wait", "--watch", "wait", is_flag=True, help="Wait for the workflow's end and tell its progress.")
@click.option("--json", "as_json", is_flag=True, help="Print what was created as JSON, for scripts.")
@click.option("--dry-run", is_flag=True, help="Check everything and print the YAML instead of sending it.")
def submit(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Send the sweep in FILE to a cluster, where Argo Workflows runs its trials as pods.

    FILE is the same that `specon run` takes. It goes straight to the API server by your
    kubeconfig, or through Argo Server by a token. Everything is checked before it is sent.

    \b
    Examples:
      specon submit sweep.py
      specon submit sweep.py -n lab --policy specon:interval=30+flowcon --wait
      specon submit sweep.py --argo-server https://argo.lab:2746 --token-file token
      specon submit sweep.py --dry-run > sweep.yaml

    Exit codes: 0 created (with --wait: succeeded), 1 the workflow failed, 2 something in the
    command or FILE is wrong, or the cluster refused it.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = Request(**options)
    _check_options(request)
    submitted = _submitted(request)
    if submitted is None:
        return
    created, channel = submitted
    _tell(request, created, channel)
    if request.wait:
        from hera_specon.cli.submit import wait_for_end  # noqa: PLC0415 - `specon --help` must not wait for it

        wait_for_end(lambda: channel.workflow(created.namespace, created.name), created.name)


def _check_options(request: Request) -> None:
    of_server = {
        "--token-file": request.token_file,
        "--certificate-authority": request.certificate_authority,
        "--insecure-skip-tls-verify": request.insecure_skip_tls_verify,
    }
    of_cluster = {"--kubeconfig": request.kubeconfig, "--context": request.context}
    odd = [name for name, value in (of_cluster if request.argo_server else of_server).items() if value]
    if odd:
        wanted = "straight to the API server, without --argo-server" if request.argo_server else "with --argo-server"
        message = f"{odd[0]} is only for submitting {wanted}."
        raise click.UsageError(message)


def _submitted(request: Request) -> "tuple[Created, Channel] | None":
    """Create the workflow; None where it was only to be printed."""
    from hera_specon.submission.edits import in_namespace, namespace_written, prepared  # noqa: PLC0415 - `specon --help` must not wait for it

    file, manifest = prepared(request.file, _wishes(request))
    check_parameters(request.parameters, file.manifest, request.file)
    if request.dry_run and request.first_nodes_of is None:
        _print_yaml(manifest if request.namespace is None else in_namespace(manifest, request.namespace))
        return None
    channel, namespace, access = _opened(request, namespace_written(manifest))
    manifest = _placed(request, in_namespace(manifest, namespace), channel, file.sweeps)
    if request.dry_run:
        _print_yaml(manifest)
        return None
    _warn(manifest, access)
    return channel.create(namespace, manifest), channel


def _wishes(request: Request) -> "Wishes":
    from hera_specon.submission.edits import Wishes, canonical_policy  # noqa: PLC0415 - imported only by who submits

    return Wishes(
        parameters=request.parameters,
        policy=None if request.policy is None else canonical_policy(request.policy),
        image=request.image,
        tracking_uri=request.mlflow_tracking_uri,
        gate_first=request.gate_first,
    )


def _placed(request: Request, manifest: dict[str, Any], channel: "Channel", sweeps: tuple[str, ...]) -> dict[str, Any]:
    """Return ``manifest`` with the first nodes of the earlier workflow that was named, if one was."""
    if request.first_nodes_of is None:
        return manifest
    from hera_specon.cluster.access import first_nodes  # noqa: PLC0415 - imported only by who needs it
    from hera_specon.submission.edits import Wishes, edited  # noqa: PLC0415

    earlier = channel.workflow(manifest["metadata"]["namespace"], request.first_nodes_of)
    return edited(manifest, Wishes(first_nodes=first_nodes(earlier, sweeps)))


def _opened(request: Request, written: str | None) -> "tuple[Channel, str, Access | None]":
    if request.argo_server is not None:
        from hera_specon.cluster.channel import ArgoServerChannel  # noqa: PLC0415 - imported only by who submits

        verify = request.certificate_authority or not request.insecure_skip_tls_verify
        return (
            ArgoServerChannel(request.argo_server, _token(request), verify),
            request.namespace or written or "default",
            None,
        )
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415 - imported only by who submits
    from hera_specon.cluster.channel import KubeChannel  # noqa: PLC0415

    access = open_cluster(request.kubeconfig, request.context, request.namespace or written)
    return KubeChannel(access.api), access.namespace, access


def _token(request: Request) -> str | None:
    if request.token_file is not None:
        return request.token_file.read_text(encoding="utf-8").strip() or None
    return os.environ.get("ARGO_TOKEN", "").strip() or None


def _warn(manifest: Mapping[str, Any], access: "Access | None") -> None:
    from hera_specon.cluster.access import claim_warnings  # noqa: PLC0415 - imported only by who submits
    from hera_specon.goals import submission_warnings  # noqa: PLC0415
    from hera_specon.submission.edits import host_path_warning, state_claims  # noqa: PLC0415

    warnings = [host_path_warning(manifest), *submission_warnings(manifest)]
    warnings += claim_warnings(access, state_claims(manifest)) if access is not None else []
    for warning in filter(None, warnings):
        click.echo(f"Warning: {warning}", err=True)


def _print_yaml(manifest: Mapping[str, Any]) -> None:
    import yaml  # noqa: PLC0415 - as above

    click.echo(yaml.safe_dump(dict(manifest), sort_keys=False), nl=False)


def _tell(request: Request, created: "Created", channel: "Channel") -> None:
    page = channel.page(created)
    if request.as_json:
        about = {"name": created.name, "namespace": created.namespace, "uid": created.uid, "page": page}
        click.echo(json.dumps(about))
        return
    click.echo(f"Created workflow {created.name} in namespace {created.namespace} (uid {created.uid})")
    if page is not None:
        click.echo(f"Its page: {page}")
    click.echo(f"Watch it: specon status {created.name} -n {created.namespace} --watch")


_EVERY_S: Final = 2.0
_PATIENCE_S: Final = 120.0
"""Seconds without an answer after which waiting is given up; the workflow runs on."""
ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


def wait_for_end(look: Callable[[], dict[str, Any]], name: str, every_s: float = _EVERY_S) -> None:
    """Look again and again until the workflow is over; each change is told on standard error.

    Raises:
        Failure: It did not succeed, or nobody answered for long.
    """
    told = ""
    heard_at = time.monotonic()
    while True:
        try:
            workflow = look()
            heard_at = time.monotonic()
        except (UnavailableError, ArgoServerError) as error:
            if time.monotonic() - heard_at > _PATIENCE_S:
                message = f"{error}\nThe workflow runs on; see it with: specon status {name}"
                raise Failure(message) from error
            workflow = {}
        phase, progress = text(workflow, "status", "phase"), text(workflow, "status", "progress")
        line = f"{name}: {phase or 'Pending'}" + (f", {progress} steps" if progress else "")
        if workflow and line != told:
            click.echo(line, err=True)
            told = line
        if phase in ENDED:
            break
        time.sleep(every_s)
    if phase != "Succeeded":
        message = f"workflow {name} {phase.lower()}: {text(workflow, 'status', 'message') or 'no reason given'}"
        raise Failure(message)
