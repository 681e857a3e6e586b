"""Ctrl-C is heard while the programs of a sweep do their worst: the run ends, and says how it goes on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_ENDS_WITHIN_S: Final = 60.0
"""It takes a second; it took minutes where the driver read what is printed here."""
LINES: Final = {
    "a flood of values": "loss: 0.5\n",
    "a flood of digits": "loss: " + "1" * 4000 + "\n",
    "a flood of pairs": "loss=1 " * 500 + "\n",
    "half lines without end": "loss: 0.5 ",
    "bytes of every kind": "".join(map(chr, range(256))),
}
FLOOD: Final = """
import os, sys, time
sys.argv.pop()
written, piece = 0, {line!r}.encode("latin-1") * (2**20 // len({line!r}))
while True:
    if written < 200 * 2**20:
        written += os.write(1, piece)
    else:
        time.sleep(0.1)
"""
JOURNAL: Final = """
import os, time
from pathlib import Path
from mlflow_hooks.points import Point
folder = Path(os.environ["SPECON_STATE_ROOT"], os.environ["SPECON_TRIAL_ID"])
folder.mkdir(parents=True, exist_ok=True)
(folder / "owner").write_text("x")
piece = Point("loss", 0.5, 1, 1).encode() * 10_000
with (folder / "points.jsonl").open("ab", 0) as journal:
    for _ in range(250):
        journal.write(piece)
    while True:
        journal.write(b"half a line")
        time.sleep(0.01)
"""
PIPES: Final = """
import os, time
from pathlib import Path
folder = Path(os.environ["SPECON_STATE_ROOT"], os.environ["SPECON_TRIAL_ID"])
folder.mkdir(parents=True, exist_ok=True)
for name in ("points.jsonl", "points.sent", "trial.json", "notices.json", "process.json", "run.json", "ended.json"):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
print("loss: 0.5", flush=True)
while True:
    time.sleep(0.1)
"""
SCRIPTS: Final = {name: FLOOD.format(line=line) for name, line in LINES.items()} | {
    "a flood in the journal": JOURNAL,
    "pipes instead of files": PIPES,
}


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.1)


@pytest.mark.parametrize("name", SCRIPTS, ids=[name.replace(" ", "-") for name in SCRIPTS])
def test_ctrl_c_ends_a_run_whatever_its_programs_write(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPTS[name])
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", "SPECON_"))}
    command = [str(Path(sys.executable).with_name("specon")), "run", "train.py", "lr=1,2,3", "--minimize", "loss"]
    with (tmp_path / "out").open("wb") as out:
        run = subprocess.Popen([*command, "--no-page"], cwd=tmp_path, env=env, stdout=out, stderr=out)
    state = tmp_path / ".specon" / "runs"

    def begun() -> bool:
        logs = sum(file.stat().st_size for file in state.glob("*/*/logs/*.log"))
        return logs > 2**22 or any(state.glob("*/*/state/*/points.jsonl"))

    try:
        wait_for(lambda: begun() or run.poll() is not None)
        time.sleep(3)  # it reads by now
        assert run.poll() is None, (tmp_path / "out").read_text()[-2000:]
        run.send_signal(signal.SIGINT)
        assert run.wait(_ENDS_WITHIN_S) == 130
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
    assert "run the same command again to go on" in (tmp_path / "out").read_text(errors="replace")
