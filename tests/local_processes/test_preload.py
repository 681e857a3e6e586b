"""What is imported before the first attempt, judged from the program's own files."""

from pathlib import Path

import pytest

from controllers.worlds.local.processes import preload
from controllers.worlds.local.processes.preload import ALWAYS, preloads


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "_installed", lambda _package: True)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_program_that_imports_nothing_slow_gets_only_the_hooks(tmp_path: Path) -> None:
    write(tmp_path, train="import json\n")
    assert preloads([["python", "train.py"]], [], tmp_path) == ALWAYS


def test_imports_are_followed_through_the_programs_own_modules(tmp_path: Path) -> None:
    write(tmp_path, jobs__vae="from jobs import loop\n", jobs__loop="def fit():\n    import torch.nn\n")
    assert "torch" in preloads([["python", "-m", "jobs.vae", "--lr=1"]], [], tmp_path)


def test_modules_named_by_a_string_are_followed_too(tmp_path: Path) -> None:
    write(tmp_path, train="MODELS = {'a': 'jobs.a'}\n", jobs__a="import keras\n")
    assert "tensorflow" in preloads([["python", "train.py"]], [], tmp_path)


def test_pytorch_comes_before_tensorflow_whose_llvm_would_not_have_it_after(tmp_path: Path) -> None:
    write(tmp_path, train="import tensorflow\nimport torch\n")
    found = preloads([["python", "train.py"]], [], tmp_path)
    assert found.index("torch._dynamo") < found.index("tensorflow")


def test_a_script_of_its_own_is_read_as_well(tmp_path: Path) -> None:
    assert "pandas" in preloads([["python"]], ["import pandas as pd\n"], tmp_path)


def test_modules_that_import_each_other_end(tmp_path: Path) -> None:
    write(tmp_path, a="import b\n", b="import a\nimport numpy\n")
    assert "numpy" in preloads([["python", "a.py"]], [], tmp_path)


def test_what_is_no_python_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, broken="import torch ((\n")
    assert preloads([["python", "broken.py"], ["/bin/sh", "-c", "true"], []], [], tmp_path) == ALWAYS


def test_what_is_not_installed_is_not_preloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "_installed", lambda package: package != "torch")
    write(tmp_path, train="import torch\nimport numpy\n")
    assert preloads([["python", "train.py"]], [], tmp_path) == (*ALWAYS, "numpy")
