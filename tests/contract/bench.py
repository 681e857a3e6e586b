"""A world behind a small bench: trials are defined by how they behave, time by what is waited for."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from controllers.core import labels
from controllers.core.actions import Action, Place
from controllers.core.expressions import MOVED, gang_retries, workers
from controllers.core.model import NodeName, Phase, Trial
from controllers.core.ports import OutcomeKind, World
from mlflow_hooks import contract

DEVICE: Final = "example.com/device"
WIDTH: Final = f"{contract.ENV_PARAM}width"
PROGRAM = Path(__file__).with_name("trial_program.py")


@dataclass(frozen=True)
class Behaviour:
    """What a trial of the contract suite does: how many steps, how many failures first, deaf to SIGTERM or not.

    It asks for ``devices``. ``params`` is the JSON text of its hyperparameters, as its environment carries them; with
    ``search``, the text of a search, it gets them when it is placed. It may have up to ``workers`` workers, each with
    that ``cpu``, and at least ``min_workers``.
    """

    steps: int = 25
    failures: int = 0
    deaf: bool = False
    retries: int = 2
    cpu: str = "100m"
    devices: int = 0
    params: str = "{}"
    search: str = ""
    workers: int = 1
    min_workers: int = 1


class Template(Protocol):
    """Makes the Argo template of a trial."""

    def __call__(self, name: str, behaviour: Behaviour) -> dict[str, Any]:
        """Return the template."""
        ...


class Bench(ABC):
    """A world with two nodes of 0.4 cores for trials, driven by hand."""

    world: World

    @property
    @abstractmethod
    def state_folder(self) -> Path:
        """Folder that holds a folder for each trial."""

    @property
    @abstractmethod
    def nodes(self) -> Sequence[NodeName]:
        """The two nodes."""

    @abstractmethod
    def submit(self, *, gated: bool = False, **behaviours: Behaviour) -> None:
        """Define a workflow of these trials and start driving it; ``gated`` ones wait for a ``Place``."""

    @abstractmethod
    def drive(self) -> bool:
        """Let the world do what is due, then give it a moment; return whether it told of a change."""

    @abstractmethod
    def kill_attempt(self, name: str) -> None:
        """SIGKILL the trial's present attempt."""

    @abstractmethod
    def restart_controller(self) -> None:
        """Forget everything, as a killed controller does, and begin again from what is kept."""

    @abstractmethod
    def close(self) -> None:
        """End everything."""

    @property
    def patience_s(self) -> float:
        """Seconds within which anything should have come about."""
        return 60.0

    def trial(self, name: str) -> Trial:
        """Return the trial as the world shows it now."""
        return next(trial for trial in self.world.trials() if trial.id.endswith(f".{name}"))

    def other_node(self, name: str) -> NodeName:
        """Return the node that the trial is not on."""
        here = self.trial(name).node
        return next(node for node in self.nodes if node != here)

    def ended(self, *names: str) -> bool:
        """Whether the trials are known and have ended."""
        over = {trial.id.rpartition(".")[2] for trial in self.world.trials() if trial.phase.ended}
        return over >= set(names)

    def phase(self, name: str) -> Phase | None:
        """Return the trial's phase, None where it is not known yet."""
        known = {trial.id.rpartition(".")[2]: trial.phase for trial in self.world.trials()}
        return known.get(name)

    def until(self, condition: Callable[[], bool]) -> None:
        """Drive the world until ``condition`` holds."""
        deadline = time.monotonic() + self.patience_s
        self.drive()
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain; trials: {self.world.trials()}"
            self.drive()

    def until_told(self, name: str, phase: Phase) -> None:
        """Drive until the world tells of a change, and the trial is in ``phase`` then."""
        deadline = time.monotonic() + self.patience_s
        # Asked only after a change was told: a world may take news in when it is asked, and tell nobody any more.
        while not (self.drive() and self.phase(name) is phase):
            assert time.monotonic() < deadline, f"waited in vain; trials: {self.world.trials()}"

    def until_gated(self, *names: str) -> None:
        """Drive until the trials are known and wait for a ``Place``."""
        self.until(lambda: all(self.phase(name) is Phase.PENDING and self.trial(name).gated for name in names))

    def place(self, name: str, node: NodeName | None = None) -> None:
        """Give a trial that waits a place; on a cluster, pods of the test before may still be leaving the node."""
        self.until(lambda: self.world.apply(Place(self.trial(name).id, () if node is None else (node,))).done)

    def take_on(self, action: Action) -> None:
        """Drive until the world has taken ``action`` on: on a cluster, a write may be under way."""
        deadline = time.monotonic() + self.patience_s
        while (outcome := self.world.apply(action)).kind is OutcomeKind.BUSY:
            assert time.monotonic() < deadline, f"{action} waited in vain; trials: {self.world.trials()}"
            self.drive()
        assert outcome.done, outcome

    def until_running(self, name: str) -> None:
        """Drive until the trial has made a step in its present attempt."""
        self.until(lambda: any(t.id.endswith(f".{name}") and t.steady for t in self.world.trials()))
        made = len(self.steps(name))
        self.until(lambda: len(self.steps(name)) > made)

    def steps(self, name: str) -> list[int]:
        """Return the steps that the trial's attempts made, in order."""
        return [int(line) for line in self._lines(name, "steps")]

    def given(self, name: str) -> list[str]:
        """Return what each attempt found: its last argument and all hyperparameters as JSON, with a blank between."""
        return self._lines(name, "given")

    def lineages(self, name: str) -> list[str]:
        """Return from whose checkpoints each attempt was told to go on, as a JSON list."""
        return self._lines(name, "lineages")

    def attempts(self, name: str) -> list[tuple[int, str]]:
        """Return pid and node of each attempt that began."""
        words = [line.split() for line in self._lines(name, "attempts")]
        return [(int(pid), node) for pid, node in words]

    def _lines(self, name: str, file: str) -> list[str]:
        found = next(self.state_folder.glob(f"*.sweep.{name}/{file}"), None)
        return found.read_text().splitlines() if found is not None else []


class DeviceBench(Bench):
    """A bench whose world gives out devices."""

    @abstractmethod
    def give_devices(self, *counts: int) -> None:
        """Let each of the two nodes have so many of ``DEVICE``; before anything is submitted."""


class GangBench(Bench):
    """A bench whose world runs trials of several workers."""

    @abstractmethod
    def crew(self, name: str) -> Sequence[str]:
        """Return the node of each worker of the trial's newest attempt, by rank, as the workers tell."""

    @abstractmethod
    def kill_worker(self, name: str, rank: int) -> None:
        """SIGKILL one worker of the trial's present attempt."""

    def until_together(self, name: str, nodes: Sequence[NodeName]) -> None:
        """Drive until the trial makes steps with a worker on each of ``nodes``, by rank."""
        self.until(lambda: self.trial(name).steady and self.trial(name).nodes == tuple(nodes))
        self.until_running(name)
        assert list(self.crew(name)) == list(nodes)


def workflow(behaviours: Mapping[str, Behaviour], template: Template) -> dict[str, Any]:
    """Return an Argo Workflow with one step per trial."""
    templates = [made for name, behaviour in behaviours.items() for made in _templates(name, behaviour, template)]
    steps = [[{"name": name, "template": name, "continueOn": {"failed": True}} for name in behaviours]]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "sweep-"},
        "spec": {"entrypoint": "main", "templates": [*templates, {"name": "main", "steps": steps}]},
    }


def _templates(name: str, behaviour: Behaviour, template: Template) -> list[dict[str, Any]]:
    """Return the template of a trial, with that of its workers where it has several, as a sweep's author gets them."""
    if behaviour.workers == 1:
        return [template(name, behaviour)]
    worker = template(f"{name}{labels.SUFFIX_WORKER}", behaviour)
    count = workers("sweep", behaviour.workers)
    values = {
        labels.INPUT_TRIAL: name,
        labels.INPUT_ATTEMPT: "{{retries}}",
        labels.INPUT_RANK: "{{item}}",
        labels.INPUT_WORKERS: count,
    }
    step = {
        "name": labels.STEP_WORKER,
        "template": worker["name"],
        "arguments": {"parameters": [{"name": key, "value": value} for key, value in values.items()]},
        "withSequence": {"count": count},
    }
    retries = {"limit": "20", "retryPolicy": "Always", "expression": gang_retries("sweep", behaviour.retries)}
    inputs = {"parameters": [{"name": labels.INPUT_TRIAL, "value": name}]}
    return [{"name": name, "inputs": inputs, "steps": [[step]], "retryStrategy": retries}, worker]


def _as_worker(made: dict[str, Any], behaviour: Behaviour) -> dict[str, Any]:
    """Return the template of a trial as that of one of its workers."""
    rank, size, attempt = (
        f"{{{{inputs.parameters.{name}}}}}" for name in (labels.INPUT_RANK, labels.INPUT_WORKERS, labels.INPUT_ATTEMPT)
    )
    notes = {
        labels.ANNOTATION_WORKERS: str(behaviour.workers),
        labels.ANNOTATION_MIN_WORKERS: str(behaviour.min_workers),
        labels.ANNOTATION_WORLD_SIZE: size,
        labels.ANNOTATION_ATTEMPT: f"{{{{workflow.uid}}}}.{attempt}",
    }
    of_the_pod = {
        contract.ENV_WORLD_SIZE: labels.ANNOTATION_WORLD_SIZE,
        contract.ENV_ATTEMPT: labels.ANNOTATION_ATTEMPT,
    }
    trial = f"{{{{inputs.parameters.{labels.INPUT_TRIAL}}}}}"
    metadata, container = made["metadata"], made["container"]
    env = [entry for entry in container["env"] if entry["name"] != contract.ENV_TRIAL_ID]
    sweep = "{{workflow.uid}}.sweep"
    given = {contract.ENV_SWEEP_ID: sweep, contract.ENV_TRIAL_ID: f"{sweep}.{trial}", contract.ENV_RANK: rank}
    env += [{"name": name, "value": value} for name, value in given.items()]
    env += [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{note}']"}}}
        for name, note in of_the_pod.items()
    ]
    inputs = (labels.INPUT_TRIAL, labels.INPUT_ATTEMPT, labels.INPUT_RANK, labels.INPUT_WORKERS)
    return {
        **{name: value for name, value in made.items() if name != "retryStrategy"},
        "metadata": {
            "labels": metadata["labels"] | {labels.LABEL_TRIAL: trial},
            "annotations": metadata["annotations"] | notes,
        },
        "inputs": {"parameters": [{"name": name} for name in inputs]},
        "container": container | {"env": env},
    }


def trial_template(name: str, behaviour: Behaviour, program: Path = PROGRAM, step_ms: int = 20) -> dict[str, Any]:
    """Return the template of one trial, or of one of its workers, as any world runs it."""
    args = [program, behaviour.steps, behaviour.failures, int(behaviour.deaf), step_ms]
    requests = {"cpu": behaviour.cpu, "memory": "16Mi"}
    devices = {DEVICE: str(behaviour.devices)} if behaviour.devices else {}
    given: list[dict[str, Any]] = [{"name": contract.ENV_PARAMS, "value": behaviour.params}]
    search = {}
    if behaviour.search:
        search = {labels.ANNOTATION_SEARCH: behaviour.search}
        notes = {
            contract.ENV_PARAMS: labels.ANNOTATION_PARAMS,
            WIDTH: f"{labels.ANNOTATION_PARAM}width",
            contract.ENV_LINEAGE: labels.ANNOTATION_LINEAGE,
        }
        given = [
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{note}']"}}}
            for name, note in notes.items()
        ]
        args.append(f"--width=$({WIDTH})")
    made: dict[str, Any] = {
        "name": name,
        "metadata": {
            "labels": {labels.LABEL_SWEEP: "sweep", labels.LABEL_TRIAL: name},
            "annotations": {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"} | search,
        },
        "retryStrategy": {"limit": "20", "expression": f"{MOVED} || asInt(retries) < {behaviour.retries}"},
        "podSpecPatch": '{"terminationGracePeriodSeconds": 2}',
        "inputs": {"parameters": [{"name": labels.INPUT_TRIAL, "value": name}]},
        "container": {
            "image": "none",
            "command": ["python3"],
            "args": [str(word) for word in args],
            "env": [
                {"name": contract.ENV_TRIAL_ID, "value": "{{workflow.uid}}.sweep." + name},
                *given,
            ],
            "resources": {"requests": {**requests, **devices}, "limits": devices},
        },
    }
    return made if behaviour.workers == 1 else _as_worker(made, behaviour)
