"""``specon submit``: a sweep on a cluster."""

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from controllers.core.errors import SpeconError
from controllers.core.means import Means
from controllers.core.stop_rules import StopRules
from hera_specon.cli.after_option import after_option
from hera_specon.cli.backend import check_parameters
from hera_specon.cli.group import CommandFailure
from hera_specon.cli.means_options import means_options
from hera_specon.cli.options import POLICY_SPEC, cluster_options, offloaded_option, parameters_option
from hera_specon.cli.output import say, write_out
from hera_specon.cli.stop_option import stop_option

if TYPE_CHECKING:
    from hera_specon.cluster.access import Access
    from hera_specon.cluster.channel import Channel, Created


_EVERY_S: Final = 2.0
_PATIENCE_S: Final = 120.0
"""Seconds without an answer after which the command stops waiting; the workflow runs on."""
ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


class SubmissionFailedError(SpeconError):
    """The cluster did not take a workflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRequest:
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
    by_s: float | None
    budget: float | None
    stop: StopRules
    after: tuple[str, ...]
    first_nodes_of: str | None
    extend: str | None
    offloaded: bool
    wait: bool
    as_json: bool
    dry_run: bool


@click.command(short_help="Send a sweep to a cluster that runs Argo Workflows.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cluster_options
@click.option(
    "--argo-server", metavar="URL", help="Submit through Argo Server, such as https://argo.lab:2746, with a token."
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
    "--insecure-skip-tls-verify",
    is_flag=True,
    help="Do not check the server's certificate; send a token even over http.",
)
@parameters_option
@click.option("--policy", metavar=POLICY_SPEC, help="Policy to run under.  [default: the one the workflow names]")
@click.option("--image", help="Image of the trials.  [default: the one the workflow names]")
@click.option("--mlflow-tracking-uri", metavar="URL", help="MLflow for the trials.  [default: as the workflow says]")
@means_options
@stop_option("what the sweep names")
@after_option()
@click.option("--gate-first", is_flag=True, help="Let the controller place first attempts too; it must be running.")
@click.option(
    "--first-nodes-of",
    metavar="WORKFLOW",
    help="Start each trial on the node where it first ran in this earlier workflow, for a fair comparison.",
)
@click.option(
    "--extend",
    metavar="WORKFLOW",
    help="Train only the trials that FILE has by now and this workflow has not, as a part of its sweep.",
)
@offloaded_option
@click.option("--wait", "--watch", "wait", is_flag=True, help="Wait until the workflow ends, and show its progress.")
@click.option("--json", "as_json", is_flag=True, help="Print what was created as JSON, for scripts.")
@click.option("--dry-run", is_flag=True, help="Check everything and print the YAML instead of sending it.")
def submit(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Send the sweep in FILE to a cluster, where Argo Workflows runs its trials as pods.

    FILE is the same that `specon run` takes. It goes to the API server with your kubeconfig, or
    through Argo Server with a token. The command checks everything before it sends the workflow.

    \b
    Examples:
      specon submit sweep.py
      specon submit sweep.py -n lab --policy specon:interval=30+flowcon --wait
      specon submit sweep.py --argo-server https://argo.lab:2746 --token-file token
      specon submit sweep.py --dry-run > sweep.yaml
      specon submit sweep.py --extend vae-sweep-x7k2p

    Exit codes: 0 created (with --wait: succeeded), 1 the workflow failed, 2 the command or FILE is
    wrong, or the cluster refused it.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = SubmitRequest(**options)
    of_server = {
        "--token-file": request.token_file,
        "--certificate-authority": request.certificate_authority,
        "--insecure-skip-tls-verify": request.insecure_skip_tls_verify,
    }
    of_cluster = {"--kubeconfig": request.kubeconfig, "--context": request.context}
    useless = [name for name, value in (of_cluster if request.argo_server else of_server).items() if value]
    if useless:
        message = f"{useless[0]} works only {'without' if request.argo_server else 'with'} --argo-server."
        raise click.UsageError(message)
    submitted = _submit(request)
    if submitted is None:
        return
    created, channel = submitted
    page = channel.page(created)
    if request.as_json:
        about = {"name": created.name, "namespace": created.namespace, "uid": created.uid, "page": page}
        write_out(json.dumps(about))
    else:
        say(f"Created workflow {created.name} in namespace {created.namespace} (uid {created.uid})")
        if page is not None:
            say(f"Its page: {page}")
        say(f"Watch it: specon status {created.name} -n {created.namespace} --watch")
    if request.wait:
        workflow = wait_for_end(lambda: channel.workflow(created.namespace, created.name), created.name)
        _warn_of_objectives(workflow)


def _submit(request: SubmitRequest) -> "tuple[Created, Channel] | None":
    """Create the workflow; None if it was only printed."""
    from hera_specon.submission.edits import Overrides, canonical_policy, edit_manifest, in_namespace, prepare_manifest  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.submission.size import check_size  # noqa: PLC0415 - as above

    overrides = Overrides(
        parameters=request.parameters,
        policy=None if request.policy is None else canonical_policy(request.policy),
        image=request.image,
        tracking_uri=request.mlflow_tracking_uri,
        gate_first=request.gate_first,
        means=Means(request.by_s, request.budget),
        stops=request.stop,
        after=request.after,
    )
    file, manifest = prepare_manifest(request.file, overrides)
    check_parameters(request.parameters, file.manifest, request.file)
    if request.dry_run and request.first_nodes_of is None and request.extend is None:
        check_size(manifest, offloaded=request.offloaded)
        _print_yaml(manifest if request.namespace is None else in_namespace(manifest, request.namespace))
        return None
    channel, namespace, access = _open_channel(request, (manifest.get("metadata") or {}).get("namespace"))
    manifest = in_namespace(manifest, namespace)
    if request.first_nodes_of is not None:
        from hera_specon.cluster.access import first_nodes  # noqa: PLC0415 - as above

        earlier = channel.workflow(namespace, request.first_nodes_of)
        manifest = edit_manifest(manifest, Overrides(first_nodes=first_nodes(earlier, file.sweeps)))
    if request.extend is not None:
        from hera_specon.cluster.access import workflow_record  # noqa: PLC0415 - as above
        from hera_specon.submission.extending import extend_manifest  # noqa: PLC0415

        before = channel.workflow(namespace, request.extend)
        manifest = extend_manifest(manifest, before, workflow_record(before))
    check_size(manifest, offloaded=request.offloaded)
    if request.dry_run:
        _print_yaml(manifest)
        return None
    with _naming_the_doctor(request, namespace):
        _warn(manifest, access)
        return channel.create(namespace, manifest), channel


@contextmanager
def _naming_the_doctor(request: SubmitRequest, namespace: str) -> Iterator[None]:
    """Add to an error of the cluster's which command looks into it; a doctor needs a kubeconfig."""
    from controllers.worlds.argo.calls.errors import ConflictError, RejectedError  # noqa: PLC0415 - `specon --help` must not wait

    try:
        yield
    except (RejectedError, ConflictError):
        raise  # of the workflow itself, and not of the cluster
    except SpeconError as error:
        words = shlex.join(["specon", "doctor", "-n", namespace, str(request.file)])
        for option, value in (("--kubeconfig", request.kubeconfig), ("--context", request.context)):
            words += f" {option} {shlex.quote(value)}" if value else ""
        message = f"{error}\nFind out what the cluster lacks, and what to do: {words}"
        raise SubmissionFailedError(message) from error


def _open_channel(request: SubmitRequest, written: str | None) -> "tuple[Channel, str, Access | None]":
    """Return the way to the cluster and the namespace there; ``written`` is the namespace that the file names."""
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.cluster.channel import ArgoServerChannel, KubeChannel  # noqa: PLC0415

    if request.argo_server is None:
        access = open_cluster(request.kubeconfig, request.context, request.namespace or written)
        return KubeChannel(access.api), access.namespace, access
    if request.token_file is not None:
        token = request.token_file.read_text(encoding="utf-8").strip()
    else:
        token = os.environ.get("ARGO_TOKEN", "").strip()
    verify = request.certificate_authority or not request.insecure_skip_tls_verify
    channel = ArgoServerChannel(request.argo_server, token or None, verify)
    return channel, request.namespace or written or "default", None


def _warn(manifest: Mapping[str, Any], access: "Access | None") -> None:
    from hera_specon.advice import advice  # noqa: PLC0415 - as below
    from hera_specon.cluster.access import claim_warnings, device_warnings, gang_warnings  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.cluster.claimed_devices import claimed_device_warnings  # noqa: PLC0415 - as above
    from hera_specon.goals import named_policies, submission_warnings  # noqa: PLC0415
    from hera_specon.risks import deaf_searches, policies_in, risks  # noqa: PLC0415
    from hera_specon.submission.checks import (  # noqa: PLC0415
        after_warning,
        asked_claims,
        asked_devices,
        asked_gangs,
        host_path_warning,
        keep_warning,
        search_warning,
        state_claims,
        stop_warning,
    )
    from hera_specon.submission.working_folders import folder_warnings  # noqa: PLC0415

    warnings = [
        host_path_warning(manifest),
        keep_warning(manifest),
        search_warning(manifest),
        stop_warning(manifest),
        after_warning(manifest),
        *submission_warnings(manifest),
    ]
    policies = policies_in(named_policies(manifest))
    warnings += folder_warnings(manifest)
    warnings += risks(policies) + deaf_searches(manifest, policies) + advice(manifest, Path.cwd())
    if access is not None:
        warnings += claim_warnings(access, state_claims(manifest))
        warnings += device_warnings(access, asked_devices(manifest))
        warnings += claimed_device_warnings(access, asked_claims(manifest))
        warnings += gang_warnings(access, asked_gangs(manifest))
    for warning in filter(None, warnings):
        say(f"Warning: {warning}", err=True)


def _print_yaml(manifest: Mapping[str, Any]) -> None:
    import yaml  # noqa: PLC0415 - `specon --help` must not wait for it

    write_out(yaml.safe_dump(dict(manifest), sort_keys=False).rstrip("\n"))


def _warn_of_objectives(workflow: Mapping[str, Any]) -> None:
    """Tell of trials that ended well and never logged their objective, as far as MLflow answers from here."""
    from controllers.tracking.access import be_impatient  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.cluster.sweep_state import objective_warnings  # noqa: PLC0415

    be_impatient()
    for warning in objective_warnings(workflow, os.environ.get("MLFLOW_TRACKING_URI")):
        say(f"Warning: {warning}", err=True)


def wait_for_end(read: Callable[[], dict[str, Any]], name: str) -> dict[str, Any]:
    """Wait until the workflow is over, and return it; print each change to standard error.

    Raises:
        Failure: It did not succeed, or nobody answered for too long.
    """
    from controllers.worlds.argo.calls.errors import UnavailableError  # noqa: PLC0415 - `specon --help` must not wait for these
    from controllers.worlds.argo.calls.untrusted import text  # noqa: PLC0415
    from hera_specon.cluster.channel import ArgoServerError  # noqa: PLC0415
    from hera_specon.formatting import printable  # noqa: PLC0415

    told = ""
    heard_at = time.monotonic()
    while True:
        try:
            workflow = read()
            heard_at = time.monotonic()
        except (UnavailableError, ArgoServerError) as error:
            if time.monotonic() - heard_at > _PATIENCE_S:
                message = f"{error}\nThe workflow runs on; see it with: specon status {name}"
                raise CommandFailure(message) from error
            workflow = {}
        phase, progress = text(workflow, "status", "phase"), text(workflow, "status", "progress")
        # Argo counts attempts: a trial that was moved is one of two, and at the end that reads as if one were missing.
        shown = progress and phase not in ENDED
        line = printable(f"{name}: {phase or 'Pending'}" + (f", {progress} steps" if shown else ""))
        if workflow and line != told:
            say(line, err=True)
            told = line
        if phase in ENDED:
            break
        time.sleep(_EVERY_S)
    if phase != "Succeeded":
        why = printable(text(workflow, "status", "message")) or "no reason given"
        message = f"workflow {name} {phase.lower()}: {why}"
        raise CommandFailure(message)
    return workflow
