"""A program of a sweep on this machine that puts a link in place of its state folder, where all may look into it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, pathlib, shutil
(run,) = pathlib.Path(".specon/runs").iterdir()
own = run / "00-ahead" / "state" / os.environ["SPECON_TRIAL_ID"]
print("loss: 0.5", flush=True)
shutil.rmtree(own, ignore_errors=True)
own.symlink_to(pathlib.Path("precious").absolute())
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_written_through_the_link_and_nobody_else_may_write_in_the_run(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(PROGRAM)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "ended.json").write_text("mine")
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MLFLOW_")}
    ran = subprocess.run(
        [sys.executable, "-m", "hera_specon.cli", "run", "t.py", "x=1,2", "--minimize", "loss", "--plain"],
        cwd=tmp_path,
        env=kept,
        umask=0,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["ended.json"]
    assert (tmp_path / "precious" / "ended.json").read_text() == "mine"
    (run,) = (tmp_path / ".specon" / "runs").iterdir()
    for folder in ("", "logs", "state"):
        assert stat.S_IMODE((run / "00-ahead" / folder).stat().st_mode) == 0o755
