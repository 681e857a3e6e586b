"""Trials of ordinary programs write files into their working folder: shared with a warning, or each into its own."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from controllers.core import labels
from controllers.core.actions import Migrate
from controllers.core.model import NodeName
from controllers.local_run.shared_files import SharedFilesWatch, written_by_us
from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, trial_template, workflow

ROOT = Path(__file__).resolve().parents[2]
NODES = {"node-1": 0.8, "node-2": 0.8}


class Sweep:
    """Trials of one program in a project's folder, driven by hand."""

    def __init__(self, project: Path, commands: Mapping[str, Sequence[str]], own: str, stack: ExitStack) -> None:
        self.project, self.run = project, project / ".specon" / "runs" / "r-1" / "00-default"
        manifest = workflow(dict.fromkeys(commands, Behaviour(retries=0)), trial_template)
        for template in manifest["spec"]["templates"][:-1]:
            self._fill(template, commands[template["name"]], own)
        shares = choose_shares(f"apart-{os.getpid()}")
        stack.callback(shares.close)
        self.run.mkdir(parents=True)
        launcher = Launcher((), 10.0, self.run / "launcher.log")
        stack.callback(launcher.close, 1.0)
        env = {name: text for name, text in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
        env |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        around = Surroundings(self.run, project, env, {}, NODES, leave_out=project / ".specon")
        program = read_workflow(manifest, "sweep", "uid", {})
        attempts = Attempts(shares, launcher, around)
        self.world = LocalWorld(program, "uid", Machine(NODES, 1e9), attempts, JobLedger())
        self._began, self._epoch = time.monotonic(), time.time()
        self._watch = SharedFilesWatch(project, self.world.short, self._epoch, written_by_us([project / ".specon"]))
        self.warnings: list[str] = []

    @staticmethod
    def _fill(template: dict[str, Any], command: Sequence[str], own: str) -> None:
        template["container"] |= {"command": list(command), "args": []}
        template["podSpecPatch"] = '{"terminationGracePeriodSeconds": 20}'
        if own:
            template["metadata"]["annotations"][labels.ANNOTATION_OWN_FOLDER] = own

    def step(self, *, last: bool = False) -> None:
        now = time.monotonic() - self._began
        self.world.advance(now)
        self.warnings += self._watch.look(now, self.world.jobs(), lambda at: at + self._epoch, last=last)
        time.sleep(0.02)

    def finish(self, within_s: float = 120.0) -> "Sweep":
        deadline = time.monotonic() + within_s
        while not self.world.finished:
            assert time.monotonic() < deadline, self.said()
            self.step()
        self.step(last=True)
        return self

    def said(self) -> list[str]:
        return sorted(line for path in (self.run / "logs").glob("*.log") for line in path.read_text().splitlines())


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


LANGUAGE_MODEL = """
import sys, time
lr = sys.argv[1]
for epoch in range(3):
    with open("model.pt", "w") as f: f.write(lr)
    with open(f"log-{lr}.txt", "a") as f: print(epoch, file=f)
    time.sleep(0.7)
print("trained", lr, "tested", open("model.pt").read())
"""
COMMANDS = {f"t{lr}": ["python", "train.py", f"{lr}"] for lr in (1, 2)}


def test_trials_that_save_under_one_name_are_warned_of_and_only_that_name(tmp_path: Path, stack: ExitStack) -> None:
    (tmp_path / "train.py").write_text(LANGUAGE_MODEL)
    it = Sweep(tmp_path, COMMANDS, "", stack).finish()
    (told,) = it.warnings
    assert f"several trials seem to write {tmp_path / 'model.pt'}: sweep.t1, sweep.t2 ran" in told


PUBLIC = """
import json, os, runpy, sys, time
from pathlib import Path
import pkg
from pkg.model import SIZE
lr = sys.argv[1]
Path("model.pt").write_text(lr)                                  # there by hand: word_language_model, Keras
Path("checkpoints").mkdir(exist_ok=True)
Path("checkpoints", "last.pt").write_text(lr)                    # there by hand: nanoGPT's out/ckpt.pt
Path("outputs", time.strftime("%Y-%m-%d")).mkdir(parents=True, exist_ok=True)
Path("outputs", time.strftime("%Y-%m-%d"), "train.log").write_text(lr)  # Hydra
versions = [int(one.name[8:]) for one in Path("lightning_logs").glob("version_*")]
version = Path("lightning_logs", f"version_{max(versions, default=-1) + 1}")  # Lightning
version.mkdir(parents=True)
(version / "hparams.yaml").write_text(lr)
with open("results.csv", "a") as f: print(lr, file=f)
(Path(__file__).parent / "beside.txt").write_text(lr)
exec(open("config/train.py").read())                             # nanoGPT
time.sleep(1)
facts = dict(
    model=Path("model.pt").read_text(), last=Path("checkpoints/last.pt").read_text(), version=version.name,
    log=Path("outputs", time.strftime("%Y-%m-%d"), "train.log").read_text(), rows=len(open("results.csv").readlines()),
    beside=Path("beside.txt").read_text(), data=Path("data/train.bin").read_text(), up=Path("../data/x").read_text(),
    size=SIZE, batch=batch, cwd=Path.cwd() == Path(os.environ["PWD"]),
    first=sys.path[0] == os.path.dirname(os.path.realpath(sys.argv[0])), args=len(sys.argv),
)
print(lr, json.dumps(facts))
"""


def public_project(folder: Path) -> Path:
    files = {
        "work/train.py": PUBLIC,
        "work/pkg/__init__.py": "",
        "work/pkg/model.py": "SIZE = 7",
        "work/config/train.py": "batch = 12",
        "work/model.pt": "by hand",
        "work/checkpoints/last.pt": "by hand",
        "work/results.csv": "lr\n",
        "work/data/train.bin": "tokens",
        "work/lightning_logs/version_4/hparams.yaml": "by hand",
        "data/x": "digits",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "work"


@pytest.mark.parametrize("kind", [["train.py"], ["-m", "train"]], ids=["script", "module"])
def test_with_folders_of_their_own_trials_find_what_they_find_by_hand_and_keep_what_they_write(
    tmp_path: Path, stack: ExitStack, kind: list[str]
) -> None:
    project = public_project(tmp_path)
    commands = {
        # One is forked, the other a fresh process.
        "t1": ["python", *kind, "1"],
        "t2": [sys.executable, "-B", *kind, "2"],
    }
    it = Sweep(project, commands, "[]", stack).finish()
    expected = (
        '{{"model": "{0}", "last": "{0}", "version": "version_5", "log": "{0}", "rows": 2, "beside": "{0}", '
        '"data": "tokens", "up": "digits", "size": 7, "batch": 12, "cwd": true, "first": true, "args": 2}}'
    )
    assert it.said() == [f"{lr} {expected.format(lr)}" for lr in (1, 2)]
    assert it.warnings == []
    assert [(project / name).read_text() for name in ("model.pt", "checkpoints/last.pt", "results.csv")] == [
        "by hand",
        "by hand",
        "lr\n",
    ]
    assert sorted(path.read_text() for path in (it.run / "work").rglob("work/model.pt")) == ["1", "2"]


SAVES = """
import sys, time
for _ in range(3):
    open(sys.argv[2], "w").write(sys.argv[1])
    time.sleep(0.5)
print("tested", open(sys.argv[2]).read())
"""


def test_trials_that_save_into_their_trial_folder_keep_their_models_apart(tmp_path: Path, stack: ExitStack) -> None:
    (tmp_path / "train.py").write_text(SAVES)
    commands = {f"t{lr}": ["python", "train.py", f"{lr}", "$(SPECON_TRIAL_FOLDER)/model.pt"] for lr in (1, 2)}
    it = Sweep(tmp_path, commands, "", stack).finish()
    assert (it.said(), it.warnings) == (["tested 1", "tested 2"], [])
    assert sorted(path.read_text() for path in it.run.glob("files/*/model.pt")) == ["1", "2"]


MOVES = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
found = Path("step.txt").read_text() if Path("step.txt").exists() else "nothing"
print("found", found, Path.cwd().name, flush=True)
Path("step.txt").write_text("my step")
if found == "nothing": time.sleep(60)
"""


def test_a_trial_that_moved_finds_the_files_that_it_wrote(tmp_path: Path, stack: ExitStack) -> None:
    (tmp_path / "train.py").write_text(MOVES)
    it = Sweep(tmp_path, {"a": ["python", "train.py"]}, "[]", stack)
    while not list(it.run.glob("work/*/*/step.txt")):
        it.step()
    time.sleep(0.2)
    (trial,) = it.world.trials()
    it.world.apply(Migrate(trial.id, (NodeName("node-2" if trial.node == "node-1" else "node-1"),)))
    it.finish()
    assert it.said() == [f"found my step {tmp_path.name}", f"found nothing {tmp_path.name}"]
    assert not (tmp_path / "step.txt").exists()
