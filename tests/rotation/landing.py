"""Which landing this is: the number in ``.ci/landing``, which the first commit of each change raises by one.

The number chooses the slice of the long tests. It is neither the number of commits, as a change has several and would
skip slices, nor anything that a service counts, as a clone has to come to the same slice as the machine that tests it.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.rotation.slices import SLICES

ROOT: Final = Path(__file__).parents[2]
COUNTER: Final = ".ci/landing"
BASE: Final = "LANDED_BEFORE"
"""The variable in which a service that knows it names the commit that a change is based on."""
LONGEST_CHANGE_H: Final = 4
"""Where ``BASE`` is not set, all commits up to this many hours before the last one are taken for one change."""


class LandingError(Exception):
    """What keeps the rotation from knowing where it is, for people."""


def landing(root: Path = ROOT) -> int:
    """Return the number of the landing that the files stand for.

    Raises:
        LandingError: the counter holds no number.
    """
    return _number((root / COUNTER).read_text(encoding="utf-8"))


def slice_of(number: int) -> str:
    """Return the slice of a landing."""
    return str((number - 1) % SLICES + 1)


def landings_until(slice_: str, number: int) -> int:
    """Return after how many landings from this one a slice runs: 0 is now."""
    return (int(slice_) - number) % SLICES


def base(root: Path = ROOT) -> str | None:
    """Return the commit on which the change stands; None where the history does not reach back to it."""
    named = os.environ.get(BASE, "")
    if named.strip("0"):
        return _git(root, "rev-parse", "--verify", f"{named}^{{commit}}") or None
    written = _git(root, "log", "-1", "--format=%ct")
    return _git(root, "rev-list", "-1", f"--before={int(written) - LONGEST_CHANGE_H * 3600}", "HEAD") or None


def why_not_raised(root: Path = ROOT) -> str | None:
    """Say why the change cannot land as it is, and what to do; None where it raised the counter."""
    before = base(root)
    if before is None:
        return None
    was = _git(root, "show", f"{before}:{COUNTER}")
    now = landing(root)
    if not was or now > _number(was):
        return None
    return f"{COUNTER} is {now}, as before this change ({before[:10]}): python -m tests.rotation raise, and commit it"


def raise_it(root: Path = ROOT) -> int:
    """Raise the counter by one over what the change is based on, however often it is called; return it."""
    before = base(root)
    was = _git(root, "show", f"{before}:{COUNTER}") if before else ""
    number = _number(was) + 1 if was else landing(root)
    (root / COUNTER).write_text(f"{number}\n", encoding="utf-8")
    return number


def changed_files(root: Path = ROOT) -> tuple[str, ...] | None:
    """Return the files that the change touches, committed or not; None where its base is not known."""
    before = base(root)
    if before is None:
        return None
    tracked = _git(root, "diff", "--name-only", before).splitlines()
    new = _git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    return tuple(sorted({*tracked, *new}))


def _number(text: str) -> int:
    if not text.strip().isdecimal():
        message = f"{COUNTER} holds {text.strip()[:40]!r} instead of the number of a landing"
        raise LandingError(message)
    return int(text)


def _git(root: Path, *arguments: str) -> str:
    """Return what git says, or nothing where it has no answer: a file or commit that is not there."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.strip() if done.returncode == 0 else ""
