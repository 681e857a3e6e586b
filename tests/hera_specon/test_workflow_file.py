import json
import os
import sys
from pathlib import Path

import pytest

from hera_specon.errors import NoWorkflowError, WorkflowFileError
from hera_specon.workflow_file import load_workflow

SWEEP = """
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="vae-", entrypoint="vae") as w:
    Sweep(name="vae", image="x", command=["true"], space={"a": choice(1, 2)}, search="grid", objective=minimize("loss"))
"""


def written(folder: Path, text: str, name: str = "vae.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_python_file_gives_its_workflow(tmp_path: Path) -> None:
    path = written(tmp_path, SWEEP)
    found = load_workflow(path)
    assert (found.path, found.name, found.sweeps) == (path, "vae", ("vae",))
    assert [template["name"] for template in found.manifest["spec"]["templates"]] == ["vae", "vae-trial"]
    assert json.loads(json.dumps(found.manifest)) == found.manifest


def test_a_file_edited_twice_in_a_second_to_the_same_size_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = written(tmp_path, SWEEP.replace('"x"', '"mine:1"'))
    then = path.stat().st_mtime
    load_workflow(path)
    os.utime(written(tmp_path, SWEEP.replace('"x"', '"mine:2"')), (then, then))
    assert "mine:2" in json.dumps(load_workflow(path).manifest)


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    written(tmp_path, "IMAGE = 'mine:1'\n", "neighbour_of_vae.py")
    path = written(tmp_path, "from neighbour_of_vae import IMAGE\n" + SWEEP.replace('"x"', "IMAGE"))
    before = list(sys.path)
    assert "mine:1" in json.dumps(load_workflow(path).manifest)
    assert sys.path == before


def test_a_file_may_import_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "IMAGE = 'mine:2'\n", "here_and_now.py")
    (tmp_path / "sub").mkdir()
    path = written(tmp_path / "sub", "from here_and_now import IMAGE\n" + SWEEP.replace('"x"', "IMAGE"))
    monkeypatch.chdir(tmp_path)
    assert "mine:2" in json.dumps(load_workflow(path.relative_to(tmp_path)).manifest)


def test_a_yaml_file_gives_the_same_workflow(tmp_path: Path) -> None:
    python = load_workflow(written(tmp_path, SWEEP))
    text = json.dumps(python.manifest)
    found = load_workflow(written(tmp_path, text, "vae.yaml"))
    assert found.manifest == python.manifest
    assert found.sweeps == ("vae",)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("vae.txt", "", "neither Python"),
        ("vae.py", "w = 3\n", "w is a int"),
        ("vae.py", "x = 3\n", "w is missing"),
        ("vae.py", "w = 1\nb = 1 / 0\n", "line 2: ZeroDivisionError"),
        ("vae.py", "w = 1\nraise SystemExit(3)\n", "line 2: SystemExit: 3"),
        ("vae.py", "a = 1\n\nb = = 2\n", "line 3: SyntaxError"),
        ("vae.py", SWEEP.replace("choice(1, 2)", "choice()"), "line 6: SpaceError"),
        ("vae.py", SWEEP.replace('entrypoint="vae"', 'entrypoint="vea"'), "entrypoint='vea'"),
        ("vae.py", "from hera.workflows import Workflow\nw = Workflow(name='x')\n", "no sweep"),
        ("vae.yaml", "a: [\n", "YAML"),
        ("vae.yaml", "a: 1\n---\nb: 2\n", "YAML"),
        ("vae.yaml", "kind: Pod\n", "not an Argo Workflow"),
        ("vae.yaml", "kind: Workflow\nspec: {templates: []}\n", "no sweep"),
    ],
)
def test_a_file_without_a_sweep_is_refused_by_name_and_reason(tmp_path: Path, name: str, text: str, shown: str) -> None:
    path = written(tmp_path, text, name)
    with pytest.raises(WorkflowFileError) as caught:
        load_workflow(path)
    assert shown in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkflowFileError, match=r"gone\.py: no such file"):
        load_workflow(tmp_path / "gone.py")


def test_a_step_that_names_no_template_is_found_in_yaml(tmp_path: Path) -> None:
    text = json.dumps(load_workflow(written(tmp_path, SWEEP)).manifest)
    broken = text.replace('"template": "vae-trial"', '"template": "vae-trail"')
    with pytest.raises(WorkflowFileError, match="'vae-trail'"):
        load_workflow(written(tmp_path, broken, "vae.yaml"))


def test_a_file_that_never_names_w_is_not_run_since_it_may_train(tmp_path: Path) -> None:
    path = written(tmp_path, "raise SystemExit('this trains for hours')\n")
    with pytest.raises(NoWorkflowError, match="w is missing"):
        load_workflow(path)


@pytest.mark.parametrize("line", ["from flows import *", "from flows import w", "import flows as w"])
def test_a_file_may_take_its_workflow_from_another(tmp_path: Path, line: str) -> None:
    (tmp_path / "flows.py").write_text(SWEEP)
    sys.modules.pop("flows", None)
    path = written(tmp_path, f"{line}\n")
    if line.endswith("as w"):
        with pytest.raises(NoWorkflowError, match="w is a module"):
            load_workflow(path)
    else:
        assert load_workflow(path).sweeps == ("vae",)
