"""What can be wrong with a workflow before anything of it runs.

WorkflowError
└── UnsupportedWorkflowError
"""

from collections.abc import Sequence


class WorkflowError(ValueError):
    """The workflow is malformed: Argo would not run it either. ``problems`` holds one line per fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class UnsupportedWorkflowError(WorkflowError):
    """The workflow asks for what one machine can't honour. ``problems`` names every such field by its path."""
