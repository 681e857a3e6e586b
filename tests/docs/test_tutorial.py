"""The tutorial, block by block, in an empty folder, with the wheels that are built from this checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.docs.page_blocks import blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "tutorial" / "first-sweep.md"
_QUICKER: Final = {"choice(100, 200, 400)": "choice(4, 8)", "mlflow server": None, "pip install": None}
"""What the test runs otherwise than a reader: shorter trainings, no server that never ends, no second installation."""
_LONGEST_S: Final = 900


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """A virtual environment with the wheel in it; what it depends on is that of this one."""
    folder = tmp_path_factory.mktemp("tutorial-environment")
    venv.create(folder / "venv")
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # A path in a .pth file is not searched for .pth files itself: the editable installation stays out of sight.
    (site / "ours.pth").write_text(sysconfig.get_paths()["purelib"])
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, ROOT / "packages" / "hooks"], os.environ, folder)
    python = folder / "venv" / "bin" / "python"
    run([*pip, "--python", python, "install", "--no-deps", "--no-index", *folder.glob("*.whl")], os.environ, folder)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "PYTHON"))}
    return {**kept, "PATH": f"{python.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run(command: Sequence[str | Path], env: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=dict(env),
        timeout=_LONGEST_S,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def test_a_reader_who_follows_the_tutorial_ends_with_the_best_model(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    told: list[str] = []
    for block in blocks(PAGE):
        text = block.text
        for there, instead in _QUICKER.items():
            text = "" if instead is None and there in text else text.replace(there, instead or there)
        if block.file:
            (tmp_path / block.file).write_text(text, encoding="utf-8")
        elif text:
            told.append(run(["bash", "-euc", text], environment, tmp_path))
    transcript = "\n".join(told)
    assert "The best models" in transcript
    assert "How the policies compare" in transcript
    assert "digits.t0" in told[-1]
    assert "0.weight" in told[-1]
    assert (tmp_path / ".specon" / "runs" / "digits-2" / "report.html").is_file()


def test_the_wheel_is_what_the_reader_runs(environment: Mapping[str, str], tmp_path: Path) -> None:
    where = run(["python", "-c", "import hera_specon; print(hera_specon.__file__)"], environment, tmp_path)
    assert str(ROOT) not in where
