"""What ``specon run`` does: check everything, find or make the run, start MLflow, and run the sweep once per policy."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient

from controllers.core.actions import Place
from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.core.results import RunResult
from controllers.driving.stop_signals import stop_on_signals
from controllers.local_run.checks import check_gpus, left_aside, stand_ins
from controllers.local_run.order import LocalSettings, Order
from controllers.local_run.reviving import REVIVED_FILE, revive
from controllers.local_run.run_folder import (
    RunFolder,
    find_or_make_run,
    find_run_of_sweep,
    find_smaller_run,
    read_result,
)
from controllers.local_run.sweep import GRACE_S, LocalSweep, Plan, RunServices, Screen, sweeps_of
from controllers.policies.registry import parse_policy, policy_spec
from controllers.record.forecasts import FORECASTS_FILE
from controllers.tracking.access import be_impatient, problem_with, shown
from controllers.tracking.sweep_runs import close_sweep
from controllers.worlds.local.gpus import gpus_here, shared_out
from controllers.worlds.local.jobs import file_name, write_whole
from controllers.worlds.local.mlflow_server import LocalMlflow
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.processes.preload import preloads
from controllers.worlds.local.workflow import PlannedTrial
from mlflow_hooks import contract

_TRACKING_URI = "MLFLOW_TRACKING_URI"


@dataclass(frozen=True)
class LocalRun:
    """What ``run_locally`` leaves: the run's folder, a result per policy, and where MLflow is.

    ``serve_mlflow`` is the command that serves MLflow again, empty where it is the user's own and goes on. ``policies``
    are the spec strings that the results belong to.
    """

    folder: Path
    results: tuple[RunResult, ...]
    tracking_uri: str
    serve_mlflow: str = ""
    policies: tuple[str, ...] = ()


def run_locally(
    workflow: Mapping[str, Any], source: Path, policies: Sequence[Policy[Any]], settings: LocalSettings, screen: Screen
) -> LocalRun:
    """Run the sweep of ``workflow`` on this machine, once under each policy, and compare from the same placement.

    Args:
        workflow: an Argo Workflow as Hera's ``to_dict()`` gives it.
        source: the file it came from.
        policies: in the order to run them; the first decides the initial placement, but for those that place trials.
        settings: nodes, seed, where runs are kept.
        screen: whoever shows it.

    Raises:
        SweepInterrupted: it was told to stop; the same call goes on.
        SpeconError: this machine cannot honour the workflow, a policy or the settings; nothing was started.
    """
    order = Order(workflow, source, policies, settings)
    planned = order.checked()
    _check_tracking_uri()
    if settings.adds_policies:
        folder, order = _with_policies_before(order)
        folder.reopen(order.identity())
    elif settings.extends:
        folder, order = _with_trials_before(order)
        folder.reopen(order.identity())
    else:
        folder = find_or_make_run(settings.state_dir, order.sweep, order.identity(), fresh=settings.fresh)
    identity = order.identity()
    with ExitStack() as stack:
        services, server, uri = _services(order, folder, planned, screen, stack)
        folder.describe(order.facts(planned, uri))
        folder.keep_order({**identity, "source": str(source)})
        for line in (*left_aside(workflow), *stand_ins(planned, folder.path)):
            screen.say(line)
        screen.say(f"run {folder.name} is kept in {folder.path}")
        if folder.resumed and not (settings.adds_policies or settings.extends):
            screen.say(f"run {folder.name} was cut short: going on where it stopped (--fresh starts anew)")
        results = _run_each(order, folder, uri, services)
        folder.describe({"finished": True, "serve_mlflow": server.serve_again if server else ""})
        return replace(_ended(folder, results, server, uri), policies=tuple(map(policy_spec, order.policies)))


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
    old, new = (
        {
            one.step.env[contract.ENV_TRIAL_ID]: (
                one.step.environment,
                one.step.command,
                one.step.args,
                one.step.source,
            )
            for one in either.program("check").trials()
        }
        for either in (kept, order)
    )
    for name, trained in old.items():
        if new.get(name) != trained:
            message = (
                f"run {folder.name} cannot be extended: its trial {name.partition('.')[2]} is not the one of "
                f"{order.source}; raise trials= and leave name, space, seed, search and command as they were"
            )
            raise SpeconError(message)
    positions = range(len(before))
    results = [folder.of_policy(number, file_name(kept.policies[number].name)) / "result.json" for number in positions]
    if new.keys() == old.keys() and folder.finished and all(path.exists() for path in results):
        message = f"run {folder.name} has all {len(new)} trials of {order.source} already: raise trials= there"
        raise SpeconError(message)
    if new.keys() != old.keys():
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
        screen: whoever shows it.
        chosen: tells by its short id whether a trial is to go on.

    Raises:
        SweepInterrupted: it was told to stop; the same call goes on.
        SpeconError: the run has not finished, or none of those trials was ended early.
    """
    folder = RunFolder(path, resumed=True)
    order = Order.kept_in(folder)
    planned = replace(order, policies=[policy]).checked()
    _check_tracking_uri()
    with ExitStack() as stack:
        services, server, uri = _services(order, folder, planned, screen, stack)
        results: list[RunResult] = []
        for position, ran_under in enumerate(order.policies):
            kept = folder.of_policy(position, file_name(ran_under.name))
            done = read_result(kept)
            if done is None and not (kept / REVIVED_FILE).exists():
                message = f"run {folder.name} has not finished under {ran_under.name}; go on with: specon run"
                raise SpeconError(message)
            if revive(kept, folder.uid(position), chosen):
                plan = _plan(order, folder, position, policy, uri)
                services.screen.begin(policy.name, len(plan.program.trials()), position + 1, len(order.policies))
                done = _run_one(plan, services)
                (kept / REVIVED_FILE).unlink()
                services.screen.end(done)
            if done is not None:
                results.append(done)
        return _ended(folder, tuple(results), server, uri)


def _ended(folder: RunFolder, results: tuple[RunResult, ...], server: LocalMlflow | None, uri: str) -> LocalRun:
    if server is None:
        return LocalRun(folder.path, results, shown(uri))
    return LocalRun(folder.path, results, server.store, server.serve_again)


def _services(
    order: Order, folder: RunFolder, planned: Sequence[PlannedTrial], screen: Screen, stack: ExitStack
) -> tuple[RunServices, LocalMlflow | None, str]:
    """Return what a run needs around it, the MLflow that was started for it, if any, and the address of MLflow."""
    stack.enter_context(folder.lock())
    stop = stack.enter_context(stop_on_signals())
    # Its imports take seconds, in which MLflow gets ready too.
    commands = [trial.step.command + trial.step.args for trial in planned]
    sources = [trial.step.source for trial in planned if trial.step.source is not None]
    launcher = Launcher(preloads(commands, sources, Path.cwd()), GRACE_S, folder.path / "launcher.log")
    stack.callback(launcher.close, GRACE_S)
    server, uri = _tracking(order.settings.state_dir, stack, screen)
    return RunServices(screen, stop, launcher, server.keep_alive if server else lambda: None), server, uri


def _run_each(order: Order, folder: RunFolder, uri: str, services: RunServices) -> tuple[RunResult, ...]:
    """Run the sweep under each policy that has no result yet."""
    results: list[RunResult] = []
    for position, policy in enumerate(order.policies):
        kept = folder.of_policy(position, file_name(policy.name))
        done = read_result(kept)
        if done is None:
            plan = _plan(order, folder, position, policy, uri, results[:1])
            services.screen.begin(policy.name, len(plan.program.trials()), position + 1, len(order.policies))
            done = _run_one(plan, services)
        services.screen.end(done)
        results.append(done)
    return tuple(results)


def _plan(
    order: Order, folder: RunFolder, position: int, policy: Policy[Any], uri: str, before: Sequence[RunResult] = ()
) -> Plan:
    """Return the plan of the ``position``-th run; ``before`` is the first of them, whose placement is everyone's."""
    uid = folder.uid(position)
    program = order.program(uid)
    trials = program.trials()
    pinned = {trial.id: trial.first_nodes or (trial.first_node,) for result in before for trial in result.trials}
    # A policy that places trials itself starts from no given placement.
    places = Place in policy.needs
    machine = order.settings.machine({} if places else pinned, gate_first=places)
    most = check_gpus(trials, gpus_here())
    # The largest first: what asks for a GPU asks for cores beside it.
    largest = sorted(machine.nodes, key=lambda node: -machine.nodes[node])
    return Plan(
        program=program,
        uid=uid,
        title=order.sweep,
        policy=policy,
        machine=replace(machine, gpus=shared_out(gpus_here(), largest, most) if most else {}),
        folder=folder.of_policy(position, file_name(order.policies[position].name)),
        sweeps=sweeps_of([trial.step for trial in trials], order.sweep),
        tracking_uri=uri,
    )


def _run_one(plan: Plan, services: RunServices) -> RunResult:
    sweep = LocalSweep(plan, services)
    result = sweep.run()
    write_whole(plan.folder / "result.json", json.dumps(result.to_dict(), indent=1).encode())
    for run in sweep.sweep_runs:
        records = [path for name in ("timeline.jsonl", FORECASTS_FILE) if (path := plan.folder / name).exists()]
        close_sweep(MlflowClient(plan.tracking_uri), run, result, records)
    return result


def _check_tracking_uri() -> None:
    """Refuse a tracking server that does not answer, before anything starts."""
    be_impatient()
    uri = os.environ.get(_TRACKING_URI)
    problem = problem_with(MlflowClient(uri)) if uri else None
    if uri and problem:
        message = f"MLFLOW_TRACKING_URI is {shown(uri)}, but nothing there answers as MLflow: {problem}"
        raise SpeconError(message)


def _tracking(state_dir: Path, stack: ExitStack, screen: Screen) -> tuple[LocalMlflow | None, str]:
    """Return the MLflow server started for this run, None where the user has one, and the address of either."""
    uri = os.environ.get(_TRACKING_URI)
    if uri:
        screen.say(f"MLflow: {shown(uri)} (from MLFLOW_TRACKING_URI)")
        return None, uri
    server = LocalMlflow(state_dir / "mlflow")
    stack.callback(server.close)
    server.start()
    server.wait_ready()
    # The hooks' deliver_leftovers looks there, as every MLflow client does.
    os.environ[_TRACKING_URI] = server.uri
    stack.callback(os.environ.pop, _TRACKING_URI, None)
    screen.say(f"MLflow: {server.uri} (watch it there while the run lasts)")
    return server, server.uri
