"""What ``specon run`` does: check everything, find or make the run, start MLflow, and run the sweep once per policy."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.core.results import RunResult
from controllers.local_run.changes import trial_that_differs
from controllers.local_run.checks import left_aside, pythons_told, stand_ins
from controllers.local_run.continuing import check_continued, check_one_policy, way_on
from controllers.local_run.cut_short import begun_run, check_nothing_is_dropped, mended_run
from controllers.local_run.full_disk import once_there_is_room
from controllers.local_run.learnt_before import learn
from controllers.local_run.order import LocalSettings, Order
from controllers.local_run.run_folder import (
    RunFolder,
    find_or_make_run,
    find_run_of_sweep,
    find_smaller_run,
    unfinished_run,
)
from controllers.local_run.services import TRACKING_URI, RunServices, Screen, own_experiments, start_services
from controllers.local_run.turns import Turns, run_each, run_revived
from controllers.policies.registry import parse_policy, policy_spec
from controllers.tracking.access import be_impatient, problem_with, shown
from controllers.tracking.experiment_checks import check_experiments, check_experiments_in, why_no_artifacts
from controllers.worlds.local.jobs import file_name
from controllers.worlds.local.serve_mlflow import DATABASE, database_uri
from controllers.worlds.local.trusted_folders import check_trusted
from controllers.worlds.local.workflow import PlannedTrial


@dataclass(frozen=True)
class LocalRun:
    """What ``run_locally`` leaves: the run's folder, a result per policy, and where MLflow is.

    ``serve_mlflow`` is the command that serves MLflow again, empty where it is the user's own and goes on. ``policies``
    are the spec strings that the results belong to. ``lacking`` is what MLflow did not take of all that, empty for
    nothing: then the same call sends it.
    """

    folder: Path
    results: tuple[RunResult, ...]
    tracking_uri: str
    serve_mlflow: str = ""
    policies: tuple[str, ...] = ()
    lacking: str = ""

    def conclude(self) -> None:
        """Take note that the run was shown: from now on the same call makes another one.

        A caller that is killed before that finds the same results by the same call, which trains nothing again. What
        MLflow lacks is sent by the same call too.
        """
        if not self.lacking:
            RunFolder(self.folder, resumed=True).describe({"finished": True})


def run_locally(
    workflow: Mapping[str, Any], source: Path, policies: Sequence[Policy[Any]], settings: LocalSettings, screen: Screen
) -> LocalRun:
    """Run the sweep of ``workflow`` on this machine, once under each policy, and compare from the same placement.

    Args:
        workflow: an Argo Workflow as Hera's ``to_dict()`` gives it.
        source: the file it came from.
        policies: in the order to run them; the first decides the initial placement, but for those that place trials.
        settings: nodes, seed, where runs are kept.
        screen: what shows it.

    Raises:
        SweepInterrupted: it was told to stop; the same call goes on.
        MissingObjectiveError: trials have ended without the objective, and the others did not begin.
        UnknownEarlierError: the sweep is to learn from one that is not there; nothing was started.
        ChangedSweepError: its newest run was cut short, and ``workflow`` has been changed since; nothing was started.
        UntrustedFolderError: somebody else may have prepared the folder for runs; nothing was started.
        SpeconError: this machine cannot honour the workflow, a policy or the settings; nothing was started.
    """
    check_trusted(settings.state_dir)
    order, notes = Order(workflow, source, policies, settings), list[str]()
    mended: RunFolder | None = None
    planned = order.checked()
    check_one_policy(order)
    notes += _check_tracking(order, planned)
    if settings.as_begun:
        folder, order = begun_run(order)
        planned = order.checked()
    elif settings.adds_policies:
        folder, order = _with_policies_before(order)
        folder.reopen(order.identity())
    elif settings.extends:
        folder, order = _with_trials_before(order)
        folder.reopen(order.identity())
    elif not settings.fresh and (mended := mended_run(order)) is not None:
        folder = mended
        notes.append(f"the objective is another one by now: going on with run {folder.name}")
    else:
        notes += [] if settings.fresh else check_nothing_is_dropped(order)
        if order.continues and (
            settings.fresh or not unfinished_run(settings.state_dir, order.sweep, order.identity())
        ):
            notes.append(check_continued(order))
        folder = find_or_make_run(settings.state_dir, order.sweep, order.identity(), fresh=settings.fresh)
    check_trusted(folder.path)
    notes += learn(order, planned, folder)
    identity = order.identity()
    with ExitStack() as stack:
        services = start_services(order, folder, planned, screen, stack)
        services.tell_of_mlflow()
        folder.describe(order.facts(planned, services.tracking_uri))
        also = {"source": str(order.source), "jobs": order.settings.jobs, "inherit": order.settings.inherit}
        folder.keep_order({**identity, **also})
        for line in (*notes, *left_aside(order.workflow), *pythons_told(planned), *stand_ins(planned, folder.path)):
            screen.say(line)
        screen.say(f"run {folder.name} is kept in {folder.path}")
        screen.locate(folder.path)
        if len(order.policies) == 1:
            for line in way_on(planned, order.continues or folder.uid(0)):
                screen.say(line)
        if folder.resumed and not (settings.adds_policies or settings.extends or mended):
            screen.say(f"run {folder.name} was cut short: going on with it (--fresh begins another)")
        turns = run_each(order, folder, services)
        served = {"serve_mlflow": services.server.serve_again if services.server else ""}
        once_there_is_room(lambda: folder.describe(served), services)
        specs = [policy_spec(policy) for policy in order.policies[: len(turns.results)]]
        return replace(_ended(folder, turns, services), policies=tuple(specs))


def _with_policies_before(order: Order) -> tuple[RunFolder, Order]:
    """Return the newest run of the same sweep, and ``order`` with the policies that this ran under before its own.

    Raises:
        SpeconError: there is no such run.
    """
    folder, before = find_run_of_sweep(order.settings.state_dir, order.sweep, order.identity())
    added = [policy_spec(policy) for policy in order.policies]
    if not folder.finished and before[-len(added) :] == added:
        before = before[: -len(added)]  # it was interrupted while it ran under these
    return folder, replace(order, policies=[*map(parse_policy, before), *order.policies])


def _with_trials_before(order: Order) -> tuple[RunFolder, Order]:
    """Return the newest run of the sweep when it had fewer trials, and ``order`` with the policies of that run.

    The results of that run are taken away, so that it is gone on with under each of its policies.

    Raises:
        SpeconError: there is no such run, it trained something else, or it has all the trials.
    """
    folder, before = find_smaller_run(order.settings.state_dir, order.sweep, order.identity())
    kept = Order.kept_in(folder)
    if name := trial_that_differs(kept, order):
        message = (
            f"run {folder.name} cannot be extended: its trial {name} is not the one of "
            f"{order.source}; raise trials= and leave name, space, seed, search and command as they were"
        )
        raise SpeconError(message)
    old, new = (len(either.program("check").trials()) for either in (kept, order))
    positions = range(len(before))
    results = [folder.of_policy(number, file_name(kept.policies[number].name)) / "result.json" for number in positions]
    if new == old and folder.finished and all(path.exists() for path in results):
        message = f"run {folder.name} has all {new} trials of {order.source} already: raise trials= there"
        raise SpeconError(message)
    if new != old:
        for path in results:
            path.unlink(missing_ok=True)
    return folder, replace(order, policies=kept.policies)


def resume_ended(
    path: Path, policy: Policy[Any], screen: Screen, chosen: Callable[[str], bool] = lambda _: True
) -> LocalRun:
    """Train trials that a policy ended early to their end, each from its checkpoint, and return the whole run.

    Args:
        path: the folder of a run.
        policy: what steers them.
        screen: what shows it.
        chosen: tells by its short id whether a trial is to go on.

    Raises:
        SweepInterrupted: it was told to stop; the same call goes on.
        SpeconError: the run has not finished, or none of those trials was ended early.
    """
    folder = RunFolder(path, resumed=True)
    order = Order.kept_in(folder)
    planned = replace(order, policies=[policy]).checked()
    for line in _check_tracking(order, planned):
        screen.say(line)
    with ExitStack() as stack:
        services = start_services(order, folder, planned, screen, stack)
        services.tell_of_mlflow()
        return _ended(folder, run_revived(order, folder, policy, chosen, services), services)


def _ended(folder: RunFolder, turns: Turns, services: RunServices) -> LocalRun:
    server = services.server
    where = shown(services.tracking_uri)
    lacking = f"MLflow at {where} lacks {turns.lacking}; it is kept in {folder.path}" if turns.lacking else ""
    if server is None:
        return LocalRun(folder.path, turns.results, where, lacking=lacking)
    return LocalRun(folder.path, turns.results, server.store, server.serve_again, lacking=lacking)


def _check_tracking(order: Order, planned: Sequence[PlannedTrial]) -> list[str]:
    """Refuse an MLflow that does not answer or has deleted an experiment of the sweep, before anything starts.

    Returns:
        What is to be said of where artifacts go.
    """
    be_impatient()
    uri, names = os.environ.get(TRACKING_URI), own_experiments(order, planned)
    if not uri:
        own = order.settings.state_dir / "mlflow"
        check_experiments_in(own / DATABASE, names, database_uri(own))
        return []
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - MLflow's import takes seconds

    from controllers.tracking.client import CarefulClient  # noqa: PLC0415 - as above

    client = CarefulClient(uri)
    problem = problem_with(client)
    if problem:
        message = f"MLFLOW_TRACKING_URI is {shown(uri)}, but nothing there answers as MLflow: {problem}"
        raise SpeconError(message)
    try:
        check_experiments(client, names, uri)
        return [f"Warning: {why}" for why in why_no_artifacts(client, names)]
    except (OSError, MlflowException):
        return []  # it answered just now
