"""``specon doctor``: what a cluster lacks for a sweep, and what to do about it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hera_specon.cli.options import cluster_options
from hera_specon.cli.output import open_console, say, write_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hera_specon.doctor.findings import Finding
    from hera_specon.doctor.sweep_needs import SweepNeeds

_WIDE: Final = 200
_LEAST_S: Final = 10
_MOST_S: Final = 3600


@click.command(short_help="Check a cluster for a sweep, and say what to do.")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cluster_options
@click.option("--image", help="Image of the pod to try out.  [default: the sweep's; without FILE: none is tried out]")
@click.option("--mlflow-tracking-uri", metavar="URL", help="MLflow for that pod.  [default: as the sweep says]")
@click.option("--no-pod", is_flag=True, help="Only read: try out no pod.")
@click.option(
    "--timeout",
    type=click.IntRange(_LEAST_S, _MOST_S),
    default=120,
    show_default=True,
    help="Seconds for the try-out of the pod.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON, for scripts.")
@click.pass_context
def doctor(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Check a cluster with your own kubeconfig: versions, permissions, quotas, the controller, Argo.

    FILE is a sweep, as for `specon submit`. Its image, volume or bucket, MLflow and service account are
    tried out by one small workflow with one pod, which is resized in place and removed again, also
    after Ctrl-C. It changes nothing else. Whatever is not ok is told with what to do.

    \b
    Examples:
      specon doctor -n lab sweep.py
      specon doctor -n lab --image hera-specon/trainer:0.2.0 --mlflow-tracking-uri http://mlflow:5000
      specon doctor -n lab --no-pod --json

    Exit codes: 0 ok or only warnings, 1 something stands against a sweep, 2 the command or FILE is wrong.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.doctor.examination import Wish, examine  # noqa: PLC0415
    from hera_specon.doctor.findings import Verdict, worst  # noqa: PLC0415

    needs, written = _needs_of(options)
    access = open_cluster(options["kubeconfig"], options["context"], options["namespace"] or written)
    wish = Wish(
        needs=needs,
        image=options["image"],
        tracking_uri=options["mlflow_tracking_uri"],
        pod=not options["no_pod"],
        timeout_s=options["timeout"],
    )
    findings = list(examine(access, wish, lambda what: say(f"... {what}", err=True)))
    verdict = worst(findings)
    if options["as_json"]:
        listed = [asdict(finding) for finding in findings]
        write_out(json.dumps({"namespace": access.namespace, "verdict": verdict, "findings": listed}, indent=2))
    else:
        _show(findings)
    ctx.exit(1 if verdict is Verdict.FAULT else 0)


def _needs_of(options: dict[str, Any]) -> "tuple[SweepNeeds | None, str | None]":
    """Return what the sweep needs, and the namespace that its file names."""
    if options["file"] is None:
        return None, None
    from hera_specon.doctor.sweep_needs import sweep_needs  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.submission.edits import Overrides, edit_manifest  # noqa: PLC0415
    from hera_specon.workflow_file import load_workflow  # noqa: PLC0415

    overrides = Overrides(image=options["image"], tracking_uri=options["mlflow_tracking_uri"])
    manifest = edit_manifest(load_workflow(options["file"]).manifest, overrides)
    return sweep_needs(manifest), (manifest.get("metadata") or {}).get("namespace")


def _show(findings: "Sequence[Finding]") -> None:
    from hera_specon.display.findings import counted, findings_table  # noqa: PLC0415 - as above

    console = open_console(None, _WIDE)
    console.print(findings_table(findings))
    say(counted(findings))
