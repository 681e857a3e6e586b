"""The sweep under each of the policies, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from controllers.core import labels
from controllers.core.actions import Place
from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.core.results import RunResult
from controllers.core.stop_rules import rules_in
from controllers.local_run.checks import gpus_to_give
from controllers.local_run.kept_checkpoints import drop_unkept
from controllers.local_run.learnt_before import learnt_in
from controllers.local_run.objective_check import objective_is_missing
from controllers.local_run.order import Order
from controllers.local_run.reviving import REVIVED_FILE, revive, take_on_changes
from controllers.local_run.run_folder import RunFolder, is_delivered, read_result
from controllers.local_run.services import RunServices, experiments_of
from controllers.local_run.sweep import LocalSweep, Plan
from controllers.worlds.local.gpus import gpus_here, shared_out
from controllers.worlds.local.jobs import file_name, load_ledger


@dataclass(frozen=True, slots=True)
class Turns:
    """What the turns came to: a result for each that has ended, and what MLflow lacks of the last, empty for nothing.

    No other turn begins where something is lacking, as it could not tell MLflow of its trials either.
    """

    results: tuple[RunResult, ...]
    lacking: str = ""


def run_each(order: Order, folder: RunFolder, services: RunServices) -> Turns:
    """Run the sweep under each policy that has no result yet, and deliver what MLflow lacks of those that have."""
    results: list[RunResult] = []
    for position, policy in enumerate(order.policies):
        kept = folder.of_policy(position, file_name(policy.name))
        done, lacking = read_result(kept), ""
        if done is None or not is_delivered(kept):
            plan = _plan(order, folder, position, policy, services.tracking_uri, results[:1])
            services.screen.begin(policy.name, len(plan.program.trials()), position + 1, len(order.policies))
            if missing := objective_is_missing(plan.folder):
                services.screen.say("what was logged and printed is read again for the objective")
            if missing or order.settings.extends:
                take_on_changes(plan.folder, plan.program, ended=missing)
            done, lacking = _run_one(plan, services, done)
        services.screen.end(done)
        _tidy(kept, _uid(order, folder, position), done, services)
        results.append(done)
        if lacking:
            return Turns(tuple(results), lacking)
    return Turns(tuple(results))


def run_revived(
    order: Order, folder: RunFolder, policy: Policy[Any], chosen: Callable[[str], bool], services: RunServices
) -> Turns:
    """Train ``chosen`` trials that were ended early to their end under ``policy``, in each of the runs under a policy.

    Raises:
        SpeconError: one of those runs has not finished.
    """
    results: list[RunResult] = []
    for position, ran_under in enumerate(order.policies):
        kept = folder.of_policy(position, file_name(ran_under.name))
        done = read_result(kept)
        if done is None and not (kept / REVIVED_FILE).exists():
            message = f"run {folder.name} has not finished under {ran_under.name}; go on with: specon run"
            raise SpeconError(message)
        lacking = ""
        if revive(kept, _uid(order, folder, position), chosen):
            # What ended the sweep would end these trials at once.
            plan = _plan(order, folder, position, policy, services.tracking_uri)
            plan = replace(plan, stops={}, trains_anyway=True)
            services.screen.begin(policy.name, len(plan.program.trials()), position + 1, len(order.policies))
            done, lacking = _run_one(plan, services, read_result(kept))
            if not lacking:
                (kept / REVIVED_FILE).unlink()
            services.screen.end(done)
            _tidy(kept, _uid(order, folder, position), done, services)
        if done is not None:
            results.append(done)
        if lacking:
            return Turns(tuple(results), lacking)
    return Turns(tuple(results))


def _plan(
    order: Order, folder: RunFolder, position: int, policy: Policy[Any], uri: str, before: Sequence[RunResult] = ()
) -> Plan:
    """Return the plan of the ``position``-th run; ``before`` is the first of them, whose placement is everyone's."""
    uid = _uid(order, folder, position)
    program = order.program(uid)
    trials = program.trials()
    pinned = {trial.id: trial.first_nodes or (trial.first_node,) for result in before for trial in result.trials}
    # A policy that places trials itself starts from no given placement.
    places = Place in policy.needs
    machine = order.settings.machine({} if places else pinned, gate_first=places)
    gpus, most = gpus_to_give(trials, gpus_here()), max((trial.step.gpus for trial in trials), default=0)
    # The largest first: what asks for a GPU asks for cores beside it.
    largest = sorted(machine.nodes, key=lambda node: -machine.nodes[node])
    return Plan(
        program=program,
        uid=uid,
        title=order.sweep,
        policy=policy,
        machine=replace(machine, gpus=shared_out(gpus, largest, most) if most else {}),
        folder=folder.of_policy(position, file_name(order.policies[position].name)),
        sweeps=experiments_of((trial.step for trial in trials), order.sweep),
        tracking_uri=uri,
        continued=bool(order.continues),
        earlier=learnt_in(folder.path),
        trains_anyway=order.settings.trains_anyway,
        stops={trial.step.labels.get(labels.LABEL_SWEEP, ""): rules_in(trial.step.annotations) for trial in trials},
    )


def _uid(order: Order, folder: RunFolder, position: int) -> str:
    """Return what the ids of the trials begin with under the ``position``-th policy."""
    return order.continues or folder.uid(position)


def _tidy(kept: Path, uid: str, done: RunResult, services: RunServices) -> None:
    """Leave the checkpoints of a sweep that has ended as its author wants them, whatever MLflow still lacks."""
    for line in drop_unkept(kept, load_ledger(kept / "ledger.json"), done, uid):
        services.screen.say(line)


def _run_one(plan: Plan, services: RunServices, before: RunResult | None) -> tuple[RunResult, str]:
    """Return the result and what MLflow lacks; ``before`` is the result where only MLflow still has to get it."""
    sweep = LocalSweep(plan, services)
    return sweep.run() if before is None else sweep.deliver(before, load_ledger(plan.folder / "ledger.json").jobs)
