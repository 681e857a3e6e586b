"""A source distribution without a file that it needs is told before it is published."""

import tarfile
from pathlib import Path

import pytest

from tests.release.distributions import PROJECTS, packages, source_problems
from tests.release.repository import ROOT, tracked_files

HOOKS = PROJECTS[1]
FILES = sorted(
    {str(file) for file in tracked_files(ROOT) if file.parts[0] in packages(HOOKS)}
    | {"pyproject.toml", "README.md", "LICENSE"}
)


def archive(folder: Path, files: list[str], link: str | None = None) -> Path:
    (folder / "text").write_text("", encoding="utf-8")
    path = folder / "hooks-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name in files:
            file.add(folder / "text", f"hooks-1.2.3/{name}")
        if link is not None:
            (folder / "link").symlink_to("../../elsewhere")
            file.add(folder / "link", f"hooks-1.2.3/{link}")
    return path


def test_one_with_every_file_of_its_packages_is_whole(tmp_path: Path) -> None:
    assert "mlflow_hooks/py.typed" in FILES
    assert source_problems(archive(tmp_path, FILES), HOOKS) == []


@pytest.mark.parametrize("missing", ["LICENSE", "mlflow_hooks/py.typed", "mlflow_hooks/session.py"])
def test_what_one_lacks_is_named_and_a_link_does_not_count(tmp_path: Path, missing: str) -> None:
    rest = [name for name in FILES if name != missing]
    assert source_problems(archive(tmp_path, rest), HOOKS) == [f"hooks-1.2.3.tar.gz lacks {missing}"]
    assert source_problems(archive(tmp_path, rest, missing), HOOKS) == [f"hooks-1.2.3.tar.gz lacks {missing}"]
