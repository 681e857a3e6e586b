"""What is wrong with a sweep for a cluster, although it may run on one machine."""

from collections.abc import Sequence

from controllers.core.errors import SpeconError


class SubmissionError(SpeconError, ValueError):
    """A workflow can't be submitted as it is. ``problems`` holds one line for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
