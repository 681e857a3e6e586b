"""What git says of the repository."""

import subprocess
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git in ``root``; who calls this looks at the exit code."""
    return subprocess.run(["/usr/bin/env", "git", *words], cwd=root, capture_output=True, text=True, check=False)


def tracked_files(root: Path) -> list[PurePosixPath]:
    """Return the files of the repository in ``root``, new ones too, but none that git ignores, and no links."""
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").stdout.split("\0")
    names = sorted({name for name in listed if name})
    return [PurePosixPath(name) for name in names if (root / name).is_file() and not (root / name).is_symlink()]


def uncommitted(root: Path) -> list[str]:
    """Return what is changed in ``root`` and not committed, one line for each file, as git shows it."""
    return git(root, "status", "--porcelain").stdout.splitlines()


def commit_of(root: Path, name: str) -> str | None:
    """Return the commit that a tag or a branch in ``root`` leads to; None where there is none of this name."""
    found = git(root, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    return found.stdout.strip() if found.returncode == 0 else None
