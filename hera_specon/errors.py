"""What an author can get wrong.

SpeconError, ValueError
├── SweepError
│   └── SpaceError
└── WorkflowFileError
"""

from pathlib import Path

from controllers.core.errors import SpeconError


class SweepError(SpeconError, ValueError):
    """A sweep can't be built from what its author wrote."""


class SpaceError(SweepError):
    """A search space is empty, contradicts itself, or doesn't fit the way it is searched."""


class WorkflowFileError(SpeconError, ValueError):
    """A file does not give a workflow with a sweep. ``path`` is the file."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")
