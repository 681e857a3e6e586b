"""``specon resume``: let trials go on that were paused, or that ended early."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from controllers.core.errors import SpeconError
from controllers.policies.kit.settings import DEFAULT_POLICY
from hera_specon.cli.backend import parse_spec
from hera_specon.cli.group import CommandFailure
from hera_specon.cli.options import POLICY_SPEC, cluster_options, offloaded_option, state_dir_option
from hera_specon.cli.output import open_console, print_how_it_went, say, say_lines, this_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from hera_specon.asking import Desk


class NothingToResumeError(SpeconError):
    """No trial of the sweep was ended early, or not the one that was named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """What was asked for on the command line."""

    sweep: str
    trials: tuple[str, ...]
    everything: bool
    policy: str
    dry_run: bool
    offloaded: bool
    plain: bool
    namespace: str | None
    kubeconfig: str | None
    context: str | None
    state_dir: Path

    def chosen(self, trial: str) -> bool:
        """Return whether a trial, such as ``vae.t007``, is to go on."""
        return self.everything or trial in self.trials or trial.rpartition(".")[2] in self.trials


@click.command(short_help="Let trials go on that were paused, or that a policy ended early.")
@click.argument("sweep")
@cluster_options
@click.option("--all", "everything", is_flag=True, help="All trials that were paused, or ended early.")
@click.option("--trial", "trials", multiple=True, metavar="TRIAL", help="One of them. Can be given several times.")
@click.option("--policy", default=DEFAULT_POLICY, show_default=True, metavar=POLICY_SPEC, help="Policy to run under.")
@click.option("--dry-run", is_flag=True, help="Only list the trials and why they were ended.")
@offloaded_option
@click.option("--plain", "--no-live", is_flag=True, help="Print plain lines instead of live tables, as in a pipe.")
@state_dir_option("Folder that `specon run` keeps its runs in.")
def resume(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Let trials of SWEEP go on from their checkpoints.

    While the sweep runs, these are trials that `specon pause` let wait. Once it is over, these are trials
    that a policy or `specon stop` ended early.

    SWEEP is the name or folder of a run on this machine, or the name of a workflow in a cluster. A
    workflow that is over is continued by a new one: its trials are the same in MLflow.

    \b
    Examples:
      specon resume demo-3 --all
      specon resume demo-3 --trial demo.t004 --trial demo.t011
      specon resume vae-sweep-x7k2p --all -n lab
      specon resume vae-sweep-x7k2p --all --dry-run

    Exit codes: 0 done, 1 no trial logged the objective, 2 the command is wrong or there is nothing
    to resume, 130 interrupted.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = ResumeRequest(**options)
    if request.everything == bool(request.trials):
        message = "Name either trials with --trial, or --all."
        raise click.UsageError(message)
    from controllers.policies.registry import parse_policy  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.records.run_folder import RunNotFoundError, find_run  # noqa: PLC0415

    parse_spec(parse_policy, request.policy, "--policy")
    try:
        folder = find_run(request.sweep, request.state_dir)
    except RunNotFoundError:
        _resume_in_a_cluster(request)
    else:
        _resume_here(request, folder)


def _print_trials(ended: dict[str, str], chosen: "Callable[[str], bool]", where: str) -> None:
    """Print the trials that are to go on.

    Raises:
        NothingToResumeError: There are none.
    """
    going_on = {trial: why for trial, why in ended.items() if chosen(trial)}
    if not going_on:
        known = ", ".join(ended) or "none"
        message = f"Nothing to resume in {where}: trials that were ended early: {known}."
        raise NothingToResumeError(message)
    for trial, why in going_on.items():
        say(f"{trial}: {why}")


def _let_go_on(request: ResumeRequest, desk: "Desk") -> None:
    """Let trials of a sweep that runs go on."""
    from hera_specon.asking import ask_no_more  # noqa: PLC0415 - `specon --help` must not wait for it

    if request.dry_run:
        for trial, ask in desk.asks().items():
            say(f"{trial}: asked to {ask}")
        return
    going_on = ask_no_more(desk, request.trials, everything=request.everything)
    if not going_on:
        message = (
            f"Nothing to resume in {desk.name}, which has not ended: no trial was asked to pause. A run on this "
            "machine that was interrupted goes on with: specon run"
        )
        raise NothingToResumeError(message)
    for trial in going_on:
        say(f"{trial}: goes on")


def _resume_here(request: ResumeRequest, folder: Path) -> None:
    from controllers.driving.stop_signals import STILL_ENDING, heard_while  # noqa: PLC0415
    from controllers.local_run.run import resume_ended  # noqa: PLC0415 - `specon --help` must not wait for MLflow
    from controllers.policies.registry import parse_policy  # noqa: PLC0415
    from hera_specon.asking import RunDesk  # noqa: PLC0415
    from hera_specon.display.screens import LiveScreen, PlainScreen  # noqa: PLC0415
    from hera_specon.records.failures import without_models  # noqa: PLC0415
    from hera_specon.records.run_folder import load_run, parts_of  # noqa: PLC0415
    from hera_specon.report.page import REPORT_FILE, write_report  # noqa: PLC0415

    record = load_run(folder)
    if not (record.about.get("finished") or len(record.results()) == len(record.about.get("policies", ()))):
        _let_go_on(request, RunDesk(folder))
        return
    stopped = {trial.id: trial.stopped for result in record.results() for trial in result.trials if trial.stopped}
    if all(run.result is not None for run in record.runs):
        _print_trials(stopped, request.chosen, folder.name)
    if request.dry_run:
        return
    console = open_console(None, outlives=True)
    live = console.is_terminal and not request.plain
    with LiveScreen(console) if live else PlainScreen(lambda line: say_lines(line, console)) as screen:
        policy = parse_policy(request.policy)
        done = heard_while(
            lambda: resume_ended(folder, policy, screen, request.chosen), lambda: screen.say(STILL_ENDING)
        )
    print_how_it_went(console, done.results, done.folder)
    write_report(folder, [folder / REPORT_FILE])
    console.print(f"Report: {folder / REPORT_FILE}", highlight=False, markup=False, soft_wrap=True)
    if done.lacking:
        message = f"{done.lacking}. To send the rest, run again: {this_command()}"
        raise CommandFailure(message)
    if message := without_models(parts_of(folder), done.results):
        raise CommandFailure(message)


def _resume_in_a_cluster(request: ResumeRequest) -> None:
    from hera_specon.asking import WorkflowDesk  # noqa: PLC0415
    from hera_specon.cluster.access import find_workflow, open_cluster, read_pods, workflow_record  # noqa: PLC0415 - as above
    from hera_specon.cluster.channel import KubeChannel  # noqa: PLC0415
    from hera_specon.submission.edits import Overrides, canonical_policy, edit_manifest  # noqa: PLC0415
    from hera_specon.submission.resuming import continue_manifest, ended_early  # noqa: PLC0415
    from hera_specon.submission.size import check_size  # noqa: PLC0415

    access = open_cluster(request.kubeconfig, request.context, request.namespace)
    workflow = find_workflow(access, request.sweep)
    record = workflow_record(workflow)
    if not record.finished:
        _let_go_on(request, WorkflowDesk(access, record))
        return
    _print_trials(ended_early(record), request.chosen, f"workflow {record.name}")
    if request.dry_run:
        return
    pods = read_pods(access, record.name)
    points = {pod.definition.id: pod.definition.point for pod in pods if pod.definition and pod.definition.point}
    manifest = continue_manifest(workflow, record, request.chosen, points)
    check_size(manifest, offloaded=request.offloaded)
    channel = KubeChannel(access.api)
    manifest = edit_manifest(manifest, Overrides(policy=canonical_policy(request.policy)))
    created = channel.create(access.namespace, manifest)
    say(f"Created workflow {created.name} in namespace {created.namespace} (uid {created.uid})")
    say(f"Watch it: specon status {created.name} -n {created.namespace} --watch")
