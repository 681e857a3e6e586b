"""What is refused before anything starts: a sweep that this machine, or any machine, could not run."""

from collections.abc import Mapping
from typing import Any

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.core.goals import GoalError, goals_in
from controllers.core.model import Action, Direction
from controllers.core.policy import Policy
from controllers.policies.comparison.clairvoyant import uninformed
from controllers.worlds.local.workflow import PlannedTrial, Program


def check_policy(policy: Policy[Any], can: frozenset[type[Action]], world: str) -> None:
    """Refuse a policy that needs an action which the world can't do, or has to know what no real world tells.

    Raises:
        SpeconError: names the policy, the world and the missing actions.
    """
    missing = sorted(action.__name__ for action in policy.needs - can)
    if missing:
        message = f"policy {policy.name!r} needs {', '.join(missing)}, which the {world} world can't do"
        raise SpeconError(message)
    if clairvoyant := uninformed(policy):
        message = (
            f"policy {clairvoyant[0]!r} must know how much work each trial has, which the {world} world can't tell; "
            "it is there to compare with, in the simulator: specon simulate"
        )
        raise SpeconError(message)


def check_sweep(program: Program, nodes: Mapping[str, float], memory: float, source: str) -> tuple[PlannedTrial, ...]:
    """Return the trials that are known before running.

    Raises:
        SpeconError: there are none, or one of them fits on no node.
    """
    planned = program.trials()
    if not planned:
        message = f"{source} defines no sweep: no template has the label {labels.LABEL_SWEEP}"
        raise SpeconError(message)
    for trial in planned:
        _check_trial(trial, max(nodes.values()), sum(nodes.values()), memory)
    return planned


def _check_trial(trial: PlannedTrial, largest: float, total: float, memory: float) -> None:
    step = trial.step
    for name in (labels.ANNOTATION_OBJECTIVE, labels.ANNOTATION_DIRECTION):
        if name not in step.annotations:
            message = f"template {step.template!r}: the annotation {name} is missing"
            raise SpeconError(message)
    direction = step.annotations[labels.ANNOTATION_DIRECTION]
    if direction not in set(Direction):
        message = f"template {step.template!r}: direction {direction!r} is not minimize or maximize"
        raise SpeconError(message)
    try:
        goals_in(step.annotations)
    except GoalError as error:
        message = f"step {step.id}: {error}"
        raise SpeconError(message) from error
    if step.workers > 1:
        message = f"step {step.id}: {step.workers} workers of {step.cpu:g} cores: " + (
            f"more than the nodes hold together ({total:g} cores)"
            if step.workers * step.cpu > total
            else "the local world runs trials of one worker"
        )
        raise SpeconError(message)
    if step.cpu > largest:
        message = f"step {step.id} requests {step.cpu:g} cores, but the largest node has {largest:g}"
        raise SpeconError(message)
    if step.memory > memory:
        message = f"step {step.id} requests {step.memory:g} bytes of memory, but a node has {memory:g}"
        raise SpeconError(message)
