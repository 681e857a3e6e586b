"""The check of layers finds what it is there to find: a copy of the code with one wrong import fails it, by name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("controllers", "hera_specon", "mlflow_hooks", "workflows")
WRONG = {
    "a world imports a policy": ("controllers/worlds/local/world.py", "controllers.policies.registry"),
    "a world imports another": ("controllers/worlds/simulated/world.py", "controllers.worlds.local.world"),
    "what is read imports what is decided": (
        "controllers/worlds/argo/reading/pods.py",
        "controllers.worlds.argo.deciding.planner",
    ),
    "a policy imports a world": ("controllers/policies/registry.py", "controllers.worlds.argo.world"),
    "the core imports a clock": ("controllers/core/engine.py", "time"),
    "a policy draws at random": ("controllers/policies/tradl.py", "random"),
    "the loop imports who drives": ("controllers/driving/driver.py", "controllers.lab.simulation.run"),
    "a controller imports the authors' side": ("controllers/record/timeline.py", "hera_specon.sweep"),
    "a hook imports a controller": ("mlflow_hooks/contract.py", "controllers.core.labels"),
    "the command line is imported": ("hera_specon/sweep.py", "hera_specon.cli.run"),
    "the simulator imports the tests": ("controllers/lab/simulation/run.py", "tests"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.yaml"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False
    )


def test_the_code_as_it_is_keeps_to_its_layers(copy: Path) -> None:
    found = lint(copy)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("wrong", WRONG, ids=[wrong.replace(" ", "-") for wrong in WRONG])
def test_a_forbidden_import_is_found(copy: Path, wrong: str) -> None:
    file, imported = WRONG[wrong]
    path = copy / file
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(f"{text}\nimport {imported}\n", encoding="utf-8")
        found = lint(copy)
    finally:
        path.write_text(text, encoding="utf-8")
    importer = file.removesuffix(".py").replace("/", ".")
    assert found.returncode != 0
    # A long pair of names is told over two lines.
    assert f"{importer} -> {imported}" in " ".join(found.stdout.split())


@pytest.mark.parametrize("package", ["controllers", "controllers/worlds", "controllers/worlds/argo", "hera_specon"])
def test_a_module_that_stands_in_no_layer_is_found(copy: Path, package: str) -> None:
    path = copy / package / "homeless.py"
    try:
        path.write_text('"""In no layer."""\n', encoding="utf-8")
        found = lint(copy)
    finally:
        path.unlink()
    assert found.returncode != 0
    assert "homeless" in found.stdout
