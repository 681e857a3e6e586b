"""How much a sampler computes to find one point, estimated before it is asked. Pure."""

from dataclasses import dataclass
from typing import Final

from controllers.core.errors import SearchError
from controllers.search.spec import SearchSpec

_CANDIDATES: Final = 24
"""Of TPE, where the settings name none."""
_GUESSES: Final = 2048
"""At which a Gaussian process is asked before its best one is refined."""
_BYTES: Final = 24
"""Of memory for each number: it stands in three arrays at a time. Measured with TPE of Optuna 5."""
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Bound:
    """At most so many ``numbers`` may be computed for one point, ``where`` it is looked for."""

    numbers: int
    where: str


IN_A_CLUSTER: Final = Bound(2**22, "the controller of a cluster")
"""A hundred MiB and half a second of CPU: all sweeps of a cluster share the process that searches."""
ON_THIS_MACHINE: Final = Bound(2**27, "one machine")
"""Three GiB and a dozen CPU seconds."""


def numbers(spec: SearchSpec, trials: int) -> int:
    """Return about how many numbers the sampler of ``spec`` computes for a point once ``trials`` are known to it."""
    dimensions, known = len(spec.space), trials + 1
    name = spec.sampler.lower().removesuffix("sampler")
    if name == "tpe":
        return _count(spec, "n_ei_candidates", _CANDIDATES) * known * dimensions
    if name == "gp":
        return (_GUESSES + known) * known * dimensions
    if name == "cmaes":
        return (_count(spec, "popsize", 0) + known) * dimensions + dimensions**3
    return (_count(spec, "population_size", 0) + known) * dimensions


def check_cost(spec: SearchSpec, trials: int, bound: Bound) -> None:
    """Refuse a search that computes too much for each point.

    Args:
        spec: The search.
        trials: How many trials it will know, or knows.
        bound: What is allowed where it runs.

    Raises:
        SearchError: It computes more than ``bound`` allows. The message says what makes it so dear.
    """
    needed = numbers(spec, trials)
    if needed <= bound.numbers:
        return
    counts = [f"{name}={value}" for name, value in spec.settings.items() if _is_count(value)]
    settings = f"{spec.sampler!r} with {', '.join(counts)}" if counts else repr(spec.sampler)
    message = (
        f"the search {settings} over {len(spec.space)} hyperparameters and {trials} trials computes "
        f"{needed:.3g} numbers for each point, some {needed * _BYTES / _MIB:.0f} MiB; {bound.where} allows "
        f"{bound.numbers:.3g}, {bound.numbers * _BYTES / _MIB:.0f} MiB. Take fewer trials or smaller settings, or a "
        "search that needs less, such as 'cmaes' or 'random'"
    )
    raise SearchError(message)


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(spec: SearchSpec, name: str, default: int) -> int:
    value = spec.settings.get(name)
    return max(1, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else default
