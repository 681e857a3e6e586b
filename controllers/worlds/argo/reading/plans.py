"""The plan of how many workers each attempt of a gang has, in annotations of its workflow. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core import labels
from controllers.worlds.argo.reading.definitions import MOST_WORKERS, TrialDefinition

_MOST_ANNOTATION: Final = 4096


@dataclass(frozen=True, slots=True)
class GangPlan:
    """How many workers each attempt of a gang has, from the first, and which attempts were asked to leave.

    Both stand in annotations of the workflow, where Argo's expressions read them. Those who may write workflows may
    write them too: the numbers of workers that count are those of the pods.
    """

    sizes: tuple[int, ...] = ()
    left: frozenset[int] = frozenset()

    @classmethod
    def of(cls, annotations: Mapping[str, str], trial: TrialDefinition) -> "GangPlan":
        """Return the plan that a workflow's annotations have for ``trial``; what makes no sense is left out."""
        sizes = _numbers(annotations.get(trial.mark(labels.ANNOTATION_GANG), ""))
        return cls(
            tuple(size for size in sizes if 0 < size <= MOST_WORKERS),
            frozenset(_numbers(annotations.get(trial.mark(labels.ANNOTATION_LEFT), ""))),
        )

    def annotations(self, trial: TrialDefinition) -> dict[str, str | None]:
        """Return the annotations that keep it."""
        sizes, left = (",".join(map(str, numbers)) for numbers in (self.sizes, sorted(self.left)))
        return {trial.mark(labels.ANNOTATION_GANG): sizes, trial.mark(labels.ANNOTATION_LEFT): left or None}

    def at(self, attempt: int, size: int, after: int, *, leaves: bool, left: Iterable[int] = ()) -> "GangPlan":
        """Return the plan for the time of an attempt.

        Args:
            attempt: Its number, from 0. Argo counts from there again where it was told to retry the workflow.
            size: How many workers it has.
            after: How many the next one begins with.
            leaves: Whether it is asked to leave, which is no failure.
            left: Attempts before it that left of their own accord.
        """
        before = (*self.sizes[:attempt], *(size for _ in range(attempt - len(self.sizes))))
        asked = {number for number in (*self.left, *left) if number < attempt} | ({attempt} if leaves else set())
        return GangPlan((*before, size, after), frozenset(asked))


NO_PLAN: Final = GangPlan()


def _numbers(written: str) -> list[int]:
    words = written.split(",") if 0 < len(written) <= _MOST_ANNOTATION else []
    return [int(word) for word in words if word.isdecimal() and word.isascii()]
