"""A workflow, read and checked, that can say at any time what should run."""

from collections.abc import Collection, Mapping
from typing import Any

from controllers.worlds.local.workflow.steps import Expansion, PlannedTrial, StepOutcome


class Program:
    """A checked workflow. Pure: the same outcomes always give the same expansion."""

    def expand(self, outcomes: Mapping[str, StepOutcome], running: Collection[str] = ()) -> Expansion:
        """Return what should exist now.

        Args:
            outcomes: How the steps and delays that are over ended, by id.
            running: Ids of steps already started; under ``parallelism`` these keep their places.
        """
        raise NotImplementedError

    def trials(self) -> tuple[PlannedTrial, ...]:
        """Return the trials that are known before running, with the delay before each."""
        raise NotImplementedError


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
    raise NotImplementedError
