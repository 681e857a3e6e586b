"""Tests lie where one looks for them: in a folder that has the place and the name of the code's."""

from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("benchmarks", "controllers", "hera_specon", "manifests", "mlflow_hooks", "workflows")


def folders_with_tests(root: Path) -> set[str]:
    """Return the folders of tests of ``PACKAGES``, as their places within ``tests/``."""
    tests = root / "tests"
    found = {file.parent for package in PACKAGES for file in (tests / package).rglob("test_*.py")}
    return {folder.relative_to(tests).as_posix() for folder in found}


def folders_without_code(root: Path) -> set[str]:
    return {folder for folder in folders_with_tests(root) if not (root / folder).is_dir()}


def test_the_folders_are_found() -> None:
    assert {"controllers/core", "controllers/worlds/local/shares", "hera_specon"} <= folders_with_tests(ROOT)


def test_every_folder_of_tests_of_a_package_is_a_folder_of_that_package() -> None:
    assert folders_without_code(ROOT) == set()


@pytest.mark.parametrize(("tested", "lost"), [("core", set()), ("cores", {"controllers/cores"})])
def test_tests_of_a_folder_that_is_not_there_are_found(tmp_path: Path, tested: str, lost: set[str]) -> None:
    (tmp_path / "controllers" / "core").mkdir(parents=True)
    file = tmp_path / "tests" / "controllers" / tested / "test_engine.py"
    file.parent.mkdir(parents=True)
    file.touch()
    assert folders_without_code(tmp_path) == lost
