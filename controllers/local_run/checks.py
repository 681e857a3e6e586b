"""What is refused before anything starts: nodes that this machine does not have, trials that fit on none of them."""

import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from controllers.core import labels
from controllers.core.devices import GPU
from controllers.core.errors import SpeconError
from controllers.core.goals import GoalError, aims_in, goals_in
from controllers.core.model import Direction
from controllers.core.stop_rules import rules_in
from controllers.core.word_script import unwrap
from controllers.search import read_search, why_no_terminator
from controllers.worlds.local.gpus import as_often, replicas_of
from controllers.worlds.local.mps import trials_for, why_no_mps
from controllers.worlds.local.processes.pythons import interpreter_of, is_same_interpreter
from controllers.worlds.local.room import Machine
from controllers.worlds.local.stand_ins import VOLUMES, WORK
from controllers.worlds.local.workflow import PlannedTrial, PodStep, Program
from controllers.worlds.local.workflow.fields import SELECTORS
from controllers.worlds.local.working_folders import read_own
from mlflow_hooks.contract import ENV_TRIAL_FOLDER
from mlflow_hooks.printed.command import program_of
from mlflow_hooks.threads import cores


def cores_here() -> float:
    """Return how many cores of this machine a sweep may use: a container may have a part of them."""
    return cores()


def check_nodes(nodes: int, cores: Sequence[float]) -> None:
    """Refuse ``nodes`` nodes, with so many ``cores`` each, that this machine does not hold.

    Raises:
        SpeconError: there are none, a size is missing or wrong, or they are too large together.
    """
    here = cores_here()
    message = ""
    if nodes < 1:
        message = f"a sweep needs at least one node, not {nodes}"
    elif len(cores) != nodes:
        message = f"{len(cores)} sizes are given for {nodes} nodes"
    elif min(cores) <= 0:
        message = f"a node needs more than 0 cores, not {min(cores):g}"
    elif sum(cores) > here * (1 + 1e-9):
        sizes = " + ".join(f"{cpu:g}" for cpu in (cores if len(set(cores)) > 1 else cores[:1]))
        message = f"{nodes} nodes of {sizes} cores are more than the {here:g} cores that are here"
    if message:
        raise SpeconError(message)


def check_sweep(program: Program, machine: Machine, source: str) -> tuple[PlannedTrial, ...]:
    """Return the trials that are known before running.

    Raises:
        SpeconError: there are none, or one of them fits on no node.
    """
    planned = program.trials()
    if not planned:
        message = f"{source} defines no sweep: no template has the label {labels.LABEL_SWEEP}"
        raise SpeconError(message)
    for trial in planned:
        _check_trial(trial, machine)
    return planned


def left_aside(workflow: Mapping[str, Any]) -> list[str]:
    """Return a line for each wish of ``workflow`` that has no meaning on this machine, where that may surprise."""
    spec = workflow.get("spec") or {}
    places = [
        ("the workflow", spec),
        *((f"template {template.get('name')!r}", template) for template in spec.get("templates") or []),
    ]
    return [
        f"{name} of {where} is left aside: nodes here are slices of this machine"
        for where, given in places
        for name in SELECTORS
        if given.get(name)
    ]


def stand_ins(planned: Sequence[PlannedTrial], folder: Path) -> list[str]:
    """Return a line for each thing that stands in for what a pod would have, in a run that is kept in ``folder``."""
    where = Path.cwd()
    lines = [f"trials run in {where}; each may write into a folder of its own, {ENV_TRIAL_FOLDER}"]
    if any(labels.ANNOTATION_OWN_FOLDER in trial.step.annotations for trial in planned):
        lines = [f"each trial runs in a copy of {where} of its own, under {WORK} of each run under {folder}"]
    for mount in dict.fromkeys(mount for trial in planned for mount in trial.step.mounts):
        whose = ", one for each trial" if mount.own else ""
        place = mount.folder or f"{VOLUMES}/{mount.name} of each run under {folder}{whose}"
        lines.append(f"volume {mount.name}: {mount.path} in commands and variables is {place}")
    return lines


def pythons_told(planned: Sequence[PlannedTrial]) -> list[str]:
    """Return a line for each interpreter that the word ``python`` means in a trial and that may surprise."""
    lines = dict[str, None]()
    for step in (trial.step for trial in planned if trial.step.command):
        command, env = unwrap(program_of(step.command + step.args)), _with_path(step)
        word = command[0]
        meant, path = interpreter_of(command, env), shutil.which(word, path=env.get("PATH"))
        if meant and sys.executable not in {word, meant}:
            lines[f"{word} means {meant}, the first one of PATH; specon itself runs in {sys.prefix}"] = None
        elif meant and path and not is_same_interpreter(path):
            lines[f"{word} means {meant}, as specon runs there and no other environment is active"] = None
    return list(lines)


def _with_path(step: PodStep) -> dict[str, str]:
    return {**os.environ, **step.env}


def gpus_to_give(planned: Sequence[PlannedTrial], gpus: Sequence[str]) -> tuple[str, ...]:
    """Return the GPUs that a run gives out of ``gpus``, each as often as trials may hold it; none where none asks.

    Raises:
        SpeconError: this machine has fewer than all workers of a trial need, a trial of several would share them, or
            nothing here divides a GPU into the parts that trials ask for.
    """
    shared, asking = replicas_of(gpus) > 1, [trial.step for trial in planned if trial.step.gpus]
    if why_not := _why_no_parts({step.gpu_part for step in asking}, gpus):
        raise SpeconError(why_not)
    given = as_often(gpus, trials_for(asking[0].gpu_part)) if asking else ()
    for step in asking:
        if step.gpu_part < 1 and step.workers > 1:
            message = (
                f"a trial has {step.workers} workers with {step.gpu_part:g} {GPU} each, but several workers of one "
                "trial cannot talk to each other from one GPU: ask for gpus=1, or for one worker"
            )
            raise SpeconError(message)
        if shared and step.gpus > 1:
            message = (
                f"a trial asks for {step.gpus} {GPU}, but CUDA_VISIBLE_DEVICES names each GPU several times "
                f"({','.join(gpus)}): only trials of one GPU can share them"
            )
            raise SpeconError(message)
        if (needed := step.gpus * step.min_workers) > len(given):
            parts = f" parts of {step.gpu_part:g}" if step.gpu_part < 1 else ""
            here = f"here are {len(given)} (CUDA_VISIBLE_DEVICES may name them)"
            message = f"a trial asks for {needed}{parts} {GPU}, but {here}"
            raise SpeconError(message)
    return given


def _why_no_parts(parts: Collection[float], gpus: Sequence[str]) -> str | None:
    """Return what speaks against trials of these ``parts`` of a GPU each, 1 for whole ones."""
    told = " and ".join(f"{part:g}" for part in sorted(parts))
    if not parts or set(parts) == {1.0}:
        return None
    if len(parts) > 1:
        return f"trials ask for {told} {GPU}: all that run together must ask for the same part, so run them in turn"
    if replicas_of(gpus) > 1:
        return f"a trial asks for {told} {GPU}, but CUDA_VISIBLE_DEVICES is {','.join(gpus)}: name each GPU once"
    if why_not := why_no_mps():
        return (
            f"a trial asks for {told} {GPU}, but {why_not}, and nothing else keeps a trial to its part: start one by "
            "'nvidia-cuda-mps-control -d'. Or ask for gpus=1 and name each GPU several times, as in "
            "CUDA_VISIBLE_DEVICES=0,0: then trials take turns, and nothing keeps them apart"
        )
    return None


def _check_annotations(step: PodStep) -> None:
    """Refuse a trial that does not say what it trains for, or that says something which means nothing."""
    for name in (labels.ANNOTATION_OBJECTIVE, labels.ANNOTATION_DIRECTION):
        if name not in step.annotations:
            message = f"template {step.template!r}: the annotation {name} is missing"
            raise SpeconError(message)
    direction = step.annotations[labels.ANNOTATION_DIRECTION]
    if direction not in set(Direction):
        message = f"template {step.template!r}: direction {direction!r} is not minimize or maximize"
        raise SpeconError(message)
    search = step.annotations.get(labels.ANNOTATION_SEARCH, "")
    try:
        goals_in(step.annotations)
        several = bool(aims_in(step.annotations).further)
    except GoalError as error:
        message = f"step {step.id}: {error}"
        raise SpeconError(message) from error
    if why_not := why_no_terminator(rules_in(step.annotations), search, several=several):
        message = f"step {step.id}: {why_not}"
        raise SpeconError(message)
    try:
        read_own(step.annotations.get(labels.ANNOTATION_OWN_FOLDER, ""))
    except ValueError as error:
        message = f"step {step.id}: the annotation {labels.ANNOTATION_OWN_FOLDER} names {error}"
        raise SpeconError(message) from error
    if search:
        read_search(search)


def _check_trial(trial: PlannedTrial, machine: Machine) -> None:
    step, largest = trial.step, max(machine.nodes.values())
    _check_annotations(step)
    for command in unwrap(program_of(step.words(step.command + step.args)))[: bool(step.command)]:
        # Without it, each attempt of each trial would fail for itself.
        program = interpreter_of((command,), _with_path(step)) or shutil.which(command, path=step.env.get("PATH"))
        if not program:
            message = f"step {step.id}: there is no command {command!r} on this machine"
            raise SpeconError(message)
    if step.cpu > largest:
        message = f"step {step.id} requests {step.cpu:g} cores, but the largest node has {largest:g}"
        raise SpeconError(message)
    if step.memory > machine.memory:
        message = f"step {step.id} requests {step.memory:g} bytes of memory, but a node has {machine.memory:g}"
        raise SpeconError(message)
    if step.min_workers > (most := machine.most_workers(step)):
        each = f"{step.cpu:g} cores and {step.memory:g} bytes each"
        message = (
            f"step {step.id} needs {step.min_workers} workers with {each}: more than the nodes hold, which is {most}; "
            "ask for fewer workers, for less for each, or give larger nodes with --cpus-per-node"
        )
        raise SpeconError(message)
