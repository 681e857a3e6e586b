"""Names that Argo, Kubernetes, a command line and Python all take as they are."""

import keyword
import re
from collections.abc import Collection
from typing import Final

from controllers.core.labels import INPUT_DELAY, INPUT_PARAMS, INPUT_TRIAL, SUFFIX_ARRIVAL
from hera_specon.errors import SpaceError, SweepError

RESERVED_INPUTS: Final = frozenset({INPUT_TRIAL, INPUT_PARAMS, INPUT_DELAY})
"""Input parameters that every sweep has already."""

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST: Final = 63 - len(SUFFIX_ARRIVAL)


def check_sweep_name(name: str | None) -> str:
    """Return ``name``.

    Raises:
        SweepError: It is no DNS-1123 label of at most 55 characters; it becomes a label's value and,
            with a suffix, the names of other templates.
    """
    if not name or len(name) > _LONGEST or not _LABEL.fullmatch(name):
        problem = f"needs a name of lower case letters, digits and '-', at most {_LONGEST} characters, not {name!r}"
        problem = f"a sweep {problem}"
        raise SweepError(problem)
    return name


def check_hyperparameter(name: object) -> str:
    """Return ``name``.

    Raises:
        SpaceError: It is no Python identifier in ASCII, or a name that every trial has already.
    """
    if not isinstance(name, str) or not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        problem = f"a hyperparameter is named like a Python variable, not {name!r}"
        raise SpaceError(problem)
    if name in RESERVED_INPUTS:
        problem = f"no hyperparameter may be named {name!r}: every trial has an input of that name"
        raise SpaceError(problem)
    return name


def check_distinct(names: Collection[str], what: str) -> None:
    """Check that no name comes twice.

    Raises:
        SweepError: Some do; the message starts with ``what`` and lists them.
    """
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        problem = f"{what}: {', '.join(map(repr, repeated))}"
        raise SweepError(problem)
