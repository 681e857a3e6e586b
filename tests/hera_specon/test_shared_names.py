"""A project that has a folder named as a package of ours is told, before it starts, which of the two is not found."""

import subprocess
import sys
from pathlib import Path

import pytest
from hera.workflows import Workflow

from hera_specon import Sweep, choice, minimize
from hera_specon.advice import advice
from hera_specon.errors import WorkflowFileError
from hera_specon.workflow_file import load_workflow

SWEEP = """
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="s-", entrypoint="s") as w:
    Sweep(name="s", image="x", command=["true"], space={"a": choice(1)}, search="grid", objective=minimize("loss"))
"""


def written(folder: Path, *files: str, text: str = "") -> None:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def told(folder: Path, *command: str) -> list[str]:
    with Workflow(generate_name="s-", entrypoint="s") as w:
        Sweep(
            name="s",
            image="x",
            command=list(command),
            space={"a": choice(1)},
            search="grid",
            objective=minimize("loss"),
        )
    return advice(w.to_dict(), folder)


@pytest.mark.parametrize(
    ("files", "program", "hidden"),
    [
        (["controllers/mine.py"], "import controllers.mine", True),
        (["controllers/mine.py"], "from controllers import mine", True),
        (["controllers/mine.py"], "def f():\n    from controllers.mine import __name__\nf()", True),
        (["controllers/__init__.py", "controllers/mine.py"], "import controllers.mine", False),
        (["controllers.py"], "import controllers", False),
        (["workflows/mine/deep.py"], "import workflows.mine.deep", True),
        (["workflows/__init__.py"], "import workflows.jobs", True),
        (["workflows/__init__.py", "workflows/jobs/__init__.py"], "import workflows.jobs", False),
        (["workflows/sweep.py"], "import workflows.jobs", False),
        (["workflows/sweep.py"], "import json", False),
    ],
)
def test_what_a_program_does_not_find_is_told_and_nothing_else(
    tmp_path: Path, files: list[str], program: str, *, hidden: bool
) -> None:
    written(tmp_path, *files)
    written(tmp_path, "train.py", text=program)
    found = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, check=False)
    assert (found.returncode != 0) is hidden, found.stderr
    lines = told(tmp_path, "python", "train.py")
    assert len(lines) == hidden
    assert all(str(tmp_path / Path(files[0]).parts[0]) in line and "train.py imports it" in line for line in lines)


def test_a_job_of_ours_that_a_folder_of_the_users_hides_is_told(tmp_path: Path) -> None:
    written(tmp_path, "workflows/__init__.py")
    (line,) = told(tmp_path, "python", "-m", "workflows.jobs.digits")
    assert f"{tmp_path / 'workflows'} hides hera-specon's own package workflows" in line
    assert "workflows.jobs.digits is not found" in line
    written(tmp_path, "workflows/jobs/digits.py")
    assert told(tmp_path, "python", "-m", "workflows.jobs.digits") == []


def test_a_program_in_a_folder_of_its_own_finds_what_lies_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "controllers/mine.py", "src/controllers/__init__.py", "src/controllers/mine.py")
    written(tmp_path, "src/train.py", text="import controllers.mine")
    assert told(tmp_path, "python", "src/train.py") == []


@pytest.mark.parametrize("line", ["import controllers.mine", "from controllers import mine", "import beside"])
def test_a_file_of_a_sweep_that_means_its_own_controllers_is_told_whose_are_loaded(tmp_path: Path, line: str) -> None:
    written(tmp_path, "controllers/__init__.py", "controllers/mine.py")
    written(tmp_path, "beside.py", text="import controllers.mine")
    written(tmp_path, "sweep.py", text=f"{line}\n{SWEEP}")
    with pytest.raises(WorkflowFileError, match=r"line 1: .*own package controllers is loaded here") as caught:
        load_workflow(tmp_path / "sweep.py")
    assert str(tmp_path / "controllers") in str(caught.value)


def test_an_import_that_fails_for_another_reason_is_told_as_it_is(tmp_path: Path) -> None:
    written(tmp_path, "controllers/__init__.py")
    written(tmp_path, "sweep.py", text=f"import nothing_of_this_name\n{SWEEP}")
    with pytest.raises(WorkflowFileError) as caught:
        load_workflow(tmp_path / "sweep.py")
    assert str(caught.value).endswith("No module named 'nothing_of_this_name'")


@pytest.mark.parametrize("file", ["controllers.py", "controllers/__init__.py"])
def test_a_package_controllers_that_was_loaded_before_ours_is_named(tmp_path: Path, file: str) -> None:
    written(tmp_path, file)
    written(tmp_path, "program.py", text="import controllers\nfrom hera_specon import Sweep")
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{(tmp_path / file).parent if '/' in file else tmp_path / file} was imported before" in done.stderr
    assert "rename that" in done.stderr
