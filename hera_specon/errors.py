"""What an author can get wrong.

SpeconError
├── SweepError           a sweep cannot be built from its settings
│   └── SpaceError       its search space is wrong
├── WorkflowFileError    a file gives no workflow with a sweep
│   └── NoWorkflowError   it is not meant to: it may be a training script
└── SubmissionError      a cluster could not run the workflow
"""

from collections.abc import Sequence
from pathlib import Path

from controllers.core.errors import SpeconError


class SweepError(SpeconError):
    """A sweep cannot be built from its settings."""


class SpaceError(SweepError):
    """A search space is empty, contradicts itself, or does not fit the way it is searched."""


class WorkflowFileError(SpeconError):
    """A file does not give a workflow with a sweep. ``path`` is the file."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")


class NoWorkflowError(WorkflowFileError):
    """A file defines no workflow at all: it may be a training script."""


class SubmissionError(SpeconError):
    """A workflow cannot be submitted as it is. ``problems`` holds one line for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
