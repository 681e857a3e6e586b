"""Python warnings of libraries, in one line each and without places in folders of packages."""

import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from hera_specon.cli.output import say

_PACKAGES: Final = tuple(sysconfig.get_path(kind) for kind in ("purelib", "platlib", "stdlib"))
_FOR_DEVELOPERS: Final = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
_LONGEST: Final = 300


@contextmanager
def library_warnings_in_short() -> Iterator[None]:
    """Tell each warning that a library gives of itself in one line on standard error, those for its makers not at all.

    What points at a file of the user's own is shown as Python shows it.
    """
    told: set[str] = set()
    as_usual = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not filename.startswith(_PACKAGES):
            as_usual(message, category, filename, lineno, file, line)
            return
        first = next(iter(str(message).strip().splitlines()), category.__name__)
        text = f"Warning: {_library(filename)} says: {first[:_LONGEST]}"
        if not issubclass(category, _FOR_DEVELOPERS) and text not in told:
            told.add(text)
            say(text, err=True)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = as_usual


def _library(filename: str) -> str:
    """Return the name of the package or module of the library whose file this is."""
    home = max((folder for folder in _PACKAGES if filename.startswith(folder)), key=len)
    return Path(filename).relative_to(home).parts[0].removesuffix(".py")
