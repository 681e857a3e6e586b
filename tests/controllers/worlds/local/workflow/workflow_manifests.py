"""Small manifests for these tests, and a world that runs a program in no time."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from controllers.worlds.local.workflow import Expansion, PodStep, Program, StepOutcome, StepStatus, read_workflow

Manifest = dict[str, Any]
GOOD = StepOutcome(StepStatus.SUCCEEDED)
BAD = StepOutcome(StepStatus.FAILED, exit_code=1)


def workflow(*templates: Manifest, **spec: object) -> Manifest:
    metadata = {"name": "w", "namespace": "lab", "labels": {"team": "vision"}}
    given = {"entrypoint": "main", "templates": list(templates), **spec}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": given}


def program(*templates: Manifest, parameters: Mapping[str, str] | None = None, **spec: object) -> Program:
    return read_workflow(workflow(*templates, **spec), "w-x1", "uid-1", parameters or {})


def pod(name: str, *args: str, inputs: tuple[str, ...] = (), **fields: object) -> Manifest:
    container = {"image": "any", "command": ["run"], "args": list(args)}
    return {"name": name, "inputs": parameters(inputs), "container": container, **fields}


def parameters(names: tuple[str, ...]) -> Manifest:
    return {"parameters": [{"name": name} for name in names]}


def call(name: str, template: str = "job", arguments: Mapping[str, Any] | None = None, **fields: object) -> Manifest:
    values = [{"name": key, "value": value} for key, value in (arguments or {}).items()]
    return {"name": name, "template": template, "arguments": {"parameters": values}, **fields}


def steps(*groups: list[Manifest], name: str = "main", **fields: object) -> Manifest:
    return {"name": name, "steps": list(groups), **fields}


def dag(*tasks: Manifest, name: str = "main", **fields: object) -> Manifest:
    return {"name": name, "dag": {"tasks": list(tasks)}, **fields}


def names(expansion: Expansion) -> list[str]:
    return [step.id.removeprefix("w-x1") for step in expansion.pods]


class Run:
    """Starts whatever is due and ends steps when told."""

    def __init__(self, of: Program) -> None:
        self.program = of
        self.outcomes: dict[str, StepOutcome] = {}
        self.running: dict[str, PodStep] = {}
        self.peak = 0
        self.look()

    def look(self) -> Expansion:
        self.now = self.program.expand(self.outcomes, self.running)
        self.running |= {step.id: step for step in self.now.pods}
        self.running |= {delay.id: PodStep(delay.id, "", ()) for delay in self.now.delays}
        self.peak = max(self.peak, len(self.now.pods))
        return self.now

    def end(self, short: str, outcome: StepOutcome = GOOD) -> list[str]:
        """End the step whose id goes on with ``short`` after the workflow's name; return what runs then."""
        del self.running[f"w-x1{short}"]
        self.outcomes[f"w-x1{short}"] = outcome
        return names(self.look())

    def to_the_end(self, outcome: Callable[[PodStep], StepOutcome]) -> Iterator[PodStep]:
        """End step after step, oldest first, yielding each."""
        while self.running:
            oldest = next(iter(self.running.values()))
            self.end(oldest.id.removeprefix("w-x1"), outcome(oldest))
            yield oldest
