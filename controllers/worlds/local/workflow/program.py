"""A workflow, read and checked, that can say at any time what should run."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from controllers.core import labels
from controllers.worlds.local.workflow.expand import Expander
from controllers.worlds.local.workflow.nodes import Node
from controllers.worlds.local.workflow.read import Source, read_source
from controllers.worlds.local.workflow.steps import Expansion, PlannedTrial, PodStep, StepOutcome, StepStatus

_DONE: Final = StepOutcome(StepStatus.SUCCEEDED)


class Program:
    """A checked workflow. Pure: the same outcomes always give the same expansion."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def expand(self, outcomes: Mapping[str, StepOutcome], running: Collection[str]) -> Expansion:
        """Return what should exist now.

        Args:
            outcomes: How the steps and delays that are over ended, by id.
            running: Ids of the steps and delays that were started. These keep their places where ``parallelism`` or
                ``failFast`` holds others back: leave one out and it may be missing from the expansion.
        """
        _, root = self._walk(outcomes, running, {})
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
        ends: dict[str, float] = {}
        while True:
            expander, root = self._walk(outcomes, (), ends)
            if root.phase.ended:
                return
            yield from (PlannedTrial(pod, expander.starts[pod.id]) for pod in root.pods)
            lengths = {pod.id: 0.0 for pod in root.pods} | {delay.id: delay.seconds for delay in root.delays}
            ends |= {name: expander.starts[name] + seconds for name, seconds in lengths.items()}
            outcomes |= dict.fromkeys(lengths, _DONE)

    def _walk(
        self, outcomes: Mapping[str, StepOutcome], running: Collection[str], ends: Mapping[str, float]
    ) -> tuple[Expander, Node]:
        expander = Expander(self._source, outcomes, running, ends)
        return expander, expander.root()

    def _admitted(self, pods: tuple[PodStep, ...], running: Collection[str]) -> tuple[PodStep, ...]:
        if self._source.parallelism is None:
            return pods
        room = self._source.parallelism - sum(pod.id in running for pod in pods)
        new = [pod.id for pod in pods if pod.id not in running][: max(room, 0)]
        return tuple(pod for pod in pods if pod.id in running or pod.id in new)


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
