"""What the author of a workflow asks of a sweep's answer: whether it is told at all, and how many of the best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hera.workflows.models import ContinueOn

from hera_specon.answer.outputs import FRONT, TOP, BestTrial, check_top
from hera_specon.errors import SweepError


class Called(Protocol):
    """The step or task that runs a sweep, as Hera makes it."""

    continue_on: ContinueOn | None

    @property
    def id(self) -> str:
        """What Argo replaces by the id of its node."""
        ...


@dataclass(slots=True)
class AskedAnswer:
    """The questions of one workflow about a sweep.

    Attributes:
        node: the step or task that runs the sweep, None where none does.
        used: whether a later step uses an output.
        tops: how many of the best trials are asked for as lists.
    """

    node: Called | None = None
    used: bool = False
    tops: set[int] = field(default_factory=set)

    @property
    def tolerant(self) -> bool:
        """Whether the answer is to come in spite of trials that failed."""
        carry_on = None if self.node is None else self.node.continue_on
        return carry_on is not None and bool(carry_on.failed)

    def best(self, sweep: str, names: Sequence[str], *, registers: bool) -> BestTrial:
        """Return the outputs of ``sweep``, which has hyperparameters of these ``names``.

        Raises:
            SweepError: Nothing runs the sweep yet.
        """
        return BestTrial(self._tag(sweep, "best"), tuple(names), registers)

    def top(self, sweep: str, count: object) -> str:
        """Return the ``count`` best trials of ``sweep`` as a list to fan out over.

        Raises:
            SweepError: Nothing runs the sweep yet, or ``count`` is no number of trials.
        """
        number = check_top(count)
        tag = self._tag(sweep, f"top({number})")
        self.tops.add(number)
        return tag(f"{TOP}{number}")

    def front(self, sweep: str, *, several: bool) -> str:
        """Return the trials on the Pareto front of ``sweep`` as a list to fan out over.

        Raises:
            SweepError: Nothing runs the sweep yet, or it has one objective.
        """
        if not several:
            problem = f"front of sweep {sweep!r} needs objectives=[...]: with one objective, best is the answer"
            raise SweepError(problem)
        return self._tag(sweep, "front")(FRONT)

    def _tag(self, sweep: str, what: str) -> Callable[[str], str]:
        if self.node is None:
            problem = f"{what} of sweep {sweep!r} is used before a Steps or a DAG runs it: call the sweep there first"
            raise SweepError(problem)
        self.used = True
        root = self.node.id.removesuffix(".id}}")
        return lambda name: f"{root}.outputs.parameters.{name}}}}}"
