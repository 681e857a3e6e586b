"""The processes that ``specon run`` starts stand below each other as the map of the code draws them."""

import json
import re
import signal

import pytest

from tests.docs.test_architecture_page import drawn
from tests.integration.workbench import Workbench

pytestmark = pytest.mark.slow

TRAIN = """
import json, os, sys, time
from pathlib import Path

import psutil

controller = next(one for one in psutil.Process().parents() if "hera_specon.cli" in one.cmdline())
while True:
    seen = {one.pid: [one.ppid(), " ".join(one.cmdline())] for one in controller.children(recursive=True)}
    if any("serve_mlflow" in command for _, command in seen.values()):
        break
    time.sleep(0.1)
written = Path(f"processes-{os.getpid()}")
written.write_text(json.dumps({"controller": controller.pid, "attempt": os.getpid(), "seen": seen}))
written.rename("processes.json")
print("loss: 1.0", flush=True)
time.sleep(1000)
"""


def drawn_paths() -> list[list[str]]:
    """Return the drawn processes, each with those above it: by the module that it is, or by its word."""
    paths: list[list[str]] = []
    above: list[str] = []
    for line in drawn("processes"):
        label = re.split(r"\s{2,}", line.lstrip("│├└─ "))[0]
        depth = (len(line) - len(line.lstrip("│├└─ "))) // 3
        module = re.search(r"\((\w+)\)", label)
        above = [*above[:depth], module[1] if module else label]
        paths.append(above)
    return paths


def test_the_processes_of_a_run_stand_below_each_other_as_they_are_drawn(workbench: Workbench) -> None:
    (workbench.folder / "train.py").write_text(TRAIN)
    found = workbench.folder / "processes.json"
    process = workbench.start(
        "run", "train.py", "rate=1,2", "--minimize", "loss", "--jobs", "1", "--plain", "--no-page"
    )
    try:
        workbench.wait_for(found.exists)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)

    told = json.loads(found.read_text())
    seen = {int(pid): (parent, command) for pid, (parent, command) in told["seen"].items()}

    def path(pid: int) -> list[str]:
        if pid == told["controller"]:
            return ["specon run"]
        parent, command = seen[pid]
        module = re.search(r"from [\w.]*?(\w+) import main; main\(\)", command)
        return [*path(parent), "attempt" if pid == told["attempt"] else module[1] if module else command]

    paths = [path(pid) for pid in seen]
    assert ["specon run", "fork_server", "fork_server", "attempt"] in paths
    assert ["specon run", "fork_server", "fork_server", "serve_mlflow"] in paths
    # Whatever an attempt starts is its program's own.
    ours = [one for one in paths if "attempt" not in one[:-1]]
    assert [one for one in ours if one not in drawn_paths()] == []
