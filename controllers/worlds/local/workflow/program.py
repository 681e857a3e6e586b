"""A workflow, read and checked, that can say at any time what should run."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from controllers import labels
from controllers.worlds.local.workflow.expand import Expander, Node
from controllers.worlds.local.workflow.read import Source, read_source
from controllers.worlds.local.workflow.steps import Delay, Expansion, PlannedTrial, PodStep, StepOutcome, StepStatus

_DONE: Final = StepOutcome(StepStatus.SUCCEEDED)


class Program:
    """A checked workflow. Pure: the same outcomes always give the same expansion."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._name = source.scope["workflow.name"]

    def expand(self, outcomes: Mapping[str, StepOutcome], running: Collection[str]) -> Expansion:
        """Return what should exist now.

        Args:
            outcomes: How the steps and delays that are over ended, by id.
            running: Ids of the steps and delays that were started. These keep their places where ``parallelism`` or
                ``failFast`` holds others back: leave one out and it may be missing from the expansion.
        """
        root = self._root(outcomes, running)
        return Expansion(
            pods=self._admitted(root.pods, running),
            delays=root.delays,
            finished=root.phase.ended,
            failed=root.phase.bad,
            message=root.message,
        )

    def trials(self) -> tuple[PlannedTrial, ...]:
        """Return the trials that are known before running, with the delay before each.

        Every step is taken to succeed at once, without output; what depends on output is not known and left out.
        """
        return tuple(trial for trial in self._planned() if labels.LABEL_SWEEP in trial.step.labels)

    def _planned(self) -> Iterator[PlannedTrial]:
        outcomes: dict[str, StepOutcome] = {}
        due: dict[str, float] = {}
        now = 0.0
        while not (root := self._root(outcomes, ())).phase.ended:
            due |= {delay.id: now + delay.seconds for delay in root.delays if delay.id not in due}
            if root.pods:
                yield from (PlannedTrial(pod, now) for pod in root.pods)
                outcomes |= {pod.id: _DONE for pod in root.pods}
                continue
            now = _first_due(root.delays, due)
            outcomes |= {delay.id: _DONE for delay in root.delays if due[delay.id] <= now}

    def _root(self, outcomes: Mapping[str, StepOutcome], running: Collection[str]) -> Node:
        source = self._source
        expander = Expander(source.templates, source.scope, outcomes, running)
        return expander.run(self._name, source.entrypoint, source.arguments)

    def _admitted(self, pods: tuple[PodStep, ...], running: Collection[str]) -> tuple[PodStep, ...]:
        if self._source.parallelism is None:
            return pods
        room = self._source.parallelism - sum(pod.id in running for pod in pods)
        new = [pod.id for pod in pods if pod.id not in running][: max(room, 0)]
        return tuple(pod for pod in pods if pod.id in running or pod.id in new)


def _first_due(delays: tuple[Delay, ...], due: Mapping[str, float]) -> float:
    return min(due[delay.id] for delay in delays)


def read_workflow(workflow: Mapping[str, Any], name: str, uid: str, parameters: Mapping[str, str]) -> Program:
    """Check ``workflow`` (as Hera's ``to_dict()`` gives it) and return it as a program.

    Args:
        workflow: The manifest.
        name: What ``{{workflow.name}}`` stands for.
        uid: What ``{{workflow.uid}}`` stands for.
        parameters: Values that override the workflow's own arguments.

    Raises:
        UnsupportedWorkflowError: The workflow has fields that can't be honoured here; all are listed.
        WorkflowError: The workflow is malformed; all faults are listed.
    """
    return Program(read_source(workflow, name, uid, parameters))
