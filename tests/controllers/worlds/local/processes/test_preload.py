"""What is imported before the first attempt, judged from the program's own files."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import mlflow_hooks
from controllers.worlds.local.processes import preload
from controllers.worlds.local.processes.preload import Plans, plan

HOOKS = ("mlflow_hooks",)


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "_installed", lambda _package: True)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def planned(root: Path, text: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    write(root, train=text)
    return plan(("python", "train.py"), root, env or {})


def test_nothing_is_imported_for_a_program_that_imports_nothing_slow(tmp_path: Path) -> None:
    assert planned(tmp_path, "import json\n") == ()


def test_imports_come_in_the_programs_own_order(tmp_path: Path) -> None:
    text = "import os\nimport tensorflow as tf\nfrom torch.utils.data import Dataset\nimport numpy as np\nwork()\n"
    assert planned(tmp_path, text)[:3] == ("tensorflow", "torch.utils.data", "numpy")


def test_nothing_is_imported_beyond_a_statement_that_may_have_a_say_in_it(tmp_path: Path) -> None:
    for statement in (
        "os.environ.update(OMP_NUM_THREADS='4')",
        "for name in ('a', 'b'): os.environ[name] = '1'",
        "import some_library",
        "os.environ['KERAS_BACKEND'] = sys.argv[1]",
        "sys.path.insert(0, 'vendored')",
        "os.environ |= {'KERAS_BACKEND': 'jax'}",
        "settings = os.environ",
        "from dotenv import load_dotenv",
    ):
        text = f"import os, sys\nimport numpy\n{statement}\nimport keras, torch\n"
        assert planned(tmp_path, text) == ("numpy",), statement


def test_what_a_program_sets_before_an_import_is_set_before_it_here_too(tmp_path: Path) -> None:
    text = (
        '"""Trains."""\nimport os\nos.environ["KERAS_BACKEND"] = "torch"\nos.environ.setdefault("A", "1")\n'
        'os.environ.setdefault("B", "1")\nimport keras\n'
    )
    assert planned(tmp_path, text, {"B": "2"})[:4] == ("KERAS_BACKEND=torch", "A=1", "B=2", "keras")


def test_a_backend_of_keras_that_does_not_outlive_a_fork_is_left_to_the_program(tmp_path: Path) -> None:
    assert planned(tmp_path, "import numpy\nimport keras\n", {"KERAS_BACKEND": "jax"}) == ("numpy",)
    assert planned(tmp_path, "import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras\n") == ("KERAS_BACKEND=jax",)


def test_statements_that_only_describe_are_passed_over(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\nimport logging, warnings\nfrom pathlib import Path\nimport tqdm\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import some_library\n"
        "ROOT = Path(__file__).resolve().parent\nEPOCHS: int = 5\nlog = logging.getLogger(__name__)\n"
        "warnings.filterwarnings('ignore')\ndef f():\n    return work()\nclass A:\n    x = 1\n"
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "if __name__ == '__main__':\n    import torch\n    work()\n"
    )
    assert planned(tmp_path, text)[:2] == ("numpy", "torch")


def test_imports_are_followed_through_the_programs_own_modules(tmp_path: Path) -> None:
    write(
        tmp_path, jobs__vae="from . import loop\nfrom jobs.data import rows\n", jobs__data="import pandas\nrows = []\n"
    )
    write(tmp_path, jobs__loop="import scipy\n")
    (tmp_path / "jobs" / "__init__.py").write_text("import numpy\n")
    found = plan(("python", "-m", "jobs.vae", "--lr=1"), tmp_path, {})
    assert found[:3] == ("numpy", "scipy", "pandas")


def test_a_calm_programs_later_imports_are_done_too(tmp_path: Path) -> None:
    text = "import importlib\nMODELS = {'a': 'jobs.a'}\ndef main():\n    import mlflow_hooks\nmain()\n"
    write(tmp_path, jobs__a="import keras\nimport torch\n")
    assert planned(tmp_path, text) == (*HOOKS, "torch", "torch._dynamo", "keras")


def test_later_imports_of_a_program_that_is_not_calm_are_left_to_it(tmp_path: Path) -> None:
    for statement in ("os.environ['A'] = '1'", "sys.path.append('x')", "import some_library", "os.putenv('A', '1')"):
        text = f"import os, sys\ndef main():\n    {statement}\n    import torch\nmain()\n"
        assert planned(tmp_path, text) == (), statement


def test_the_compiler_of_pytorch_is_left_out_where_tensorflows_llvm_is_there_before(tmp_path: Path) -> None:
    assert "torch._dynamo" not in planned(tmp_path, "import tensorflow\nimport torch\n")


def test_a_module_beside_the_script_comes_before_what_is_installed(tmp_path: Path) -> None:
    write(tmp_path, torch="import numpy\n")
    assert planned(tmp_path, "import torch\n") == ("numpy",)


def test_a_script_of_its_own_is_read_as_well(tmp_path: Path) -> None:
    assert "pandas" in plan(("python",), tmp_path, {}, "import pandas as pd\n")


def test_modules_that_import_each_other_end(tmp_path: Path) -> None:
    write(tmp_path, b="import train\nimport numpy\n")
    assert "numpy" in planned(tmp_path, "import b\n")


def test_what_is_no_python_is_left_alone(tmp_path: Path) -> None:
    assert planned(tmp_path, "import torch ((\n") == ()
    for command in (("/bin/sh", "-c", "true"), ("python", "-c", "import torch"), ("python", "none.py"), ("python",)):
        assert plan(command, tmp_path, {}) == ()


def test_what_is_not_installed_ends_the_first_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preload, "_installed", lambda package: package != "torch")
    assert planned(tmp_path, "import numpy\nimport torch\nimport pandas\n")[:1] == ("numpy",)


def test_a_plan_is_made_again_once_one_of_the_programs_files_has_changed(tmp_path: Path) -> None:
    write(tmp_path, train="import own\n", own="import numpy\n")
    plans, command = Plans(), ("python", "train.py")
    assert plans.of(command, tmp_path, {}) == ("numpy",)
    write(tmp_path, own="import pandas\n")
    assert plans.of(command, tmp_path, {}) == ("pandas",)


def test_the_hooks_are_a_library_also_where_they_lie_beside_the_program() -> None:
    checkout = Path(mlflow_hooks.__file__).parents[1]
    steps = plan(["python", "-m", "workflows.jobs.pytorch.tuned"], checkout, {})
    assert {"torch", "mlflow_hooks", "torch._dynamo"} <= set(steps)
