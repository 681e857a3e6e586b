"""What is run: lists of trials, fixed before the first run. A seed draws others of the same kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hera_specon import choice, log_uniform, uniform
from hera_specon.points import Search, points
from hera_specon.space import Point, Space

SIZES: Final = ("full", "small")
_SMALL: Final = 0.02
_FEW: Final = 4
_LITTLE: Final = 40
_BESIDE: Final = 700
"""MB that a bounded command may hold beside its trials' data."""


@dataclass(frozen=True, slots=True)
class Workload:
    """So many ``trials``, of ``shortest`` to ``longest`` units of work, or of exactly ``lengths``.

    With ``memory``, each holds so many MB of examples, and the memory of the command is bounded. One that is ``spare``
    is only measured where it is asked for.
    """

    title: str
    trials: int
    shortest: float = 0.0
    longest: float = 0.0
    lengths: tuple[float, ...] = ()
    memory: int = 0
    spare: bool = False

    def sized(self, sizes: str) -> "Workload":
        """Return it as it is, or for ``small`` with few trials of little work, for a test."""
        if sizes != "small":
            return self
        return replace(
            self,
            trials=min(self.trials, _FEW),
            shortest=self.shortest * _SMALL,
            longest=self.longest * _SMALL,
            lengths=tuple(one * _SMALL for one in self.lengths[:_FEW]),
            memory=min(self.memory, _LITTLE),
        )

    @property
    def search(self) -> Search:
        """How the trials are found in the space."""
        return "grid" if self.lengths else "random"

    @property
    def space(self) -> Space:
        """The hyperparameters, as the author of a sweep writes them."""
        if self.lengths:
            return {"lr": choice(0.1), "work": choice(*self.lengths)}
        return {"lr": log_uniform(0.01, 0.3), "work": uniform(self.shortest, self.longest)}

    def points(self, seed: int) -> Sequence[Point]:
        """Return the trials of a seed, in the order of the list that every tool gets."""
        return points(self.space, self.search, self.trials, seed)

    def bound(self, cores: int) -> int | None:
        """Return how many bytes the command may hold with all that it starts: a trial for each core has room."""
        return (cores * self.memory + _BESIDE) * 10**6 if self.memory else None


WORKLOADS: Final[Mapping[str, Workload]] = {
    "minutes": Workload("24 trials of 5 to 30 CPU s", 24, 5, 30),
    "seconds": Workload("200 trials of 1 to 3 CPU s", 200, 1, 3),
    # Even steps of the logarithm, shuffled once by random.Random(1).
    "unlike": Workload("8 trials of 4 to 60 CPU s", 8, lengths=(13, 41, 6, 28, 60, 4, 19, 9)),
    "memory": Workload("24 trials of 400 MB, of 5 to 20 CPU s, in bounded memory", 24, 5, 20, memory=400),
    # Not all alike: hyperparameters tell trials apart.
    "many": Workload("1,000 trials of about 1 CPU s", 1000, 0.95, 1.05, spare=True),
}
