"""Which interpreter ``python`` means: that of the user's shell."""

import os
import sys
from pathlib import Path

import pytest

from controllers.worlds.local.processes.pythons import interpreter_of, is_this_python

OWN = Path(sys.executable)


@pytest.fixture(autouse=True)
def specon_in_a_virtual_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "own"))
    monkeypatch.setattr(sys, "base_prefix", "/usr")


def environment(folder: Path, name: str, *, venv: bool) -> Path:
    """Make an environment with a ``python`` in it, and return the folder of that."""
    scripts = folder / name / "bin"
    scripts.mkdir(parents=True)
    (scripts / "python").symlink_to(OWN.resolve())
    if venv:
        (folder / name / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return scripts


def test_python_is_that_of_the_active_environment(tmp_path: Path) -> None:
    scripts = environment(tmp_path, "project", venv=True)
    for more in ({"VIRTUAL_ENV": str(scripts.parent)}, {}):
        assert interpreter_of(("python", "x.py"), {"PATH": str(scripts), **more}) == str(scripts / "python")


def test_python_is_that_of_an_active_conda_environment(tmp_path: Path) -> None:
    scripts = environment(tmp_path, "conda", venv=False)
    env = {"PATH": str(scripts), "CONDA_PREFIX": str(scripts.parent)}
    assert interpreter_of(("python",), env) == str(scripts / "python")


def test_python_is_specons_own_where_only_the_systems_is_on_the_path(tmp_path: Path) -> None:
    scripts = environment(tmp_path, "usr", venv=False)
    assert interpreter_of(("python3",), {"PATH": str(scripts)}) == sys.executable
    assert is_this_python(("python",), {"PATH": str(scripts)})


@pytest.mark.parametrize("mark", ["uv-receipt.toml", "pipx_metadata.json"])
def test_python_is_the_systems_where_specon_is_installed_as_a_tool(tmp_path: Path, mark: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / mark).write_text("")
    scripts = environment(tmp_path, "usr", venv=False)
    assert interpreter_of(("python",), {"PATH": str(scripts)}) == str(scripts / "python")


def test_python_is_specons_own_where_the_path_has_none() -> None:
    assert interpreter_of(("python",), {"PATH": "/nowhere"}) == sys.executable


def test_two_environments_of_one_interpreter_are_told_apart(tmp_path: Path) -> None:
    scripts = environment(tmp_path, "project", venv=True)
    assert not is_this_python(("python",), {"PATH": str(scripts)})
    assert is_this_python(("python",), {"PATH": f"{OWN.parent}:{scripts}"})


@pytest.mark.parametrize("word", ["sh", "./train.py", "python2", "python3.99", "/usr/bin/python3"])
def test_other_words_are_no_question_of_environments(word: str) -> None:
    assert interpreter_of((word,), dict(os.environ)) == ""
