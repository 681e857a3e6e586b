"""The two distributions as wheels: what is in them, and the one for trainers installed as an image does it."""

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.release.distributions import MARKER, packages, wheel_problems

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT: Final = Path(__file__).resolve().parents[2]
HOOKS: Final = ROOT / "packages" / "hooks"
TRIAL: Final = """
from mlflow_hooks import trial

with trial() as t:
    for step in t.steps(3):
        t.log(loss=1.0 / (step + 1))
"""
MOST_PACKAGES: Final = 45
"""mlflow-skinny brings some thirty; MLflow with its server brings three times as many."""


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=dict(env or os.environ), check=False, text=True, capture_output=True
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, HOOKS, ROOT, cwd=folder)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


def modules(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_no_file_is_in_both_distributions_so_that_neither_removes_a_part_of_the_other(
    wheels: Mapping[str, Path],
) -> None:
    hooks, whole = modules(wheels["hera_specon_hooks"]), modules(wheels["hera_specon"])
    assert "mlflow_hooks/session.py" in hooks
    assert "hera_specon/sweep.py" in whole
    assert not hooks & whole
    assert {name.partition("/")[0] for name in hooks} == {"mlflow_hooks"}


@pytest.mark.parametrize(("name", "folder"), [("hera_specon", ROOT), ("hera_specon_hooks", HOOKS)])
def test_type_checkers_may_read_every_package_that_is_shipped(
    wheels: Mapping[str, Path], name: str, folder: Path
) -> None:
    there = modules(wheels[name])
    assert packages(folder)
    assert [package for package in packages(folder) if f"{package}/{MARKER}" not in there] == []


@pytest.mark.parametrize(("name", "folder"), [("hera_specon", ROOT), ("hera_specon_hooks", HOOKS)])
def test_a_wheel_has_every_file_of_its_packages_the_licence_and_our_addresses(
    wheels: Mapping[str, Path], name: str, folder: Path
) -> None:
    assert wheel_problems(wheels[name], folder) == []


def test_both_distributions_have_the_same_licence() -> None:
    # A link would stay one in the source distribution, and lead out of it.
    assert not (HOOKS / "LICENSE").is_symlink()
    assert (HOOKS / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_what_a_wheel_lacks_is_told(wheels: Mapping[str, Path], tmp_path: Path) -> None:
    whole = zipfile.ZipFile(wheels["hera_specon_hooks"])
    with zipfile.ZipFile(tmp_path / "lean.whl", "w") as lean:
        for name in whole.namelist():
            if not name.endswith((MARKER, "LICENSE", "session.py")):
                lean.writestr(name, whole.read(name).replace(b"/issues", b"/elsewhere"))
        lean.writestr("mlflow_hooks/stray.py", "")
    told = "\n".join(wheel_problems(tmp_path / "lean.whl", HOOKS))
    for expected in ("lacks mlflow_hooks/py.typed", "lacks mlflow_hooks/session.py", "stray.py", "licence", "/issues"):
        assert expected in told


def test_the_whole_asks_for_the_hooks_of_its_own_version() -> None:
    version = project(ROOT)["version"]
    assert project(HOOKS)["version"] == version
    assert f"hera-specon-hooks=={version}" in project(ROOT)["dependencies"]


def test_a_trial_runs_with_the_hooks_and_mlflow_skinny_alone(wheels: Mapping[str, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheels["hera_specon_hooks"], cwd=tmp_path)
    told = json.loads(run(python, "-m", "pip", "list", "--format=json", cwd=tmp_path))
    installed = {package["name"].lower() for package in told}
    assert {"hera-specon-hooks", "mlflow-skinny"} <= installed
    assert not installed & {"mlflow", "optuna", "kubernetes", "plotly", "hera", "numpy"}
    assert len(installed) < MOST_PACKAGES
    (tmp_path / "train.py").write_text(TRIAL, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "PYTHON", "SPECON_"))}
    state = {"SPECON_TRIAL_ID": "u.s.t000", "SPECON_STATE_ROOT": str(tmp_path / "state")}
    tracking = {"MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    run(python, "train.py", cwd=tmp_path, env={**kept, **state, **tracking})
    points = (tmp_path / "state" / "u.s.t000" / "points.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in points if '"loss"' in line] == [0, 1, 2]
