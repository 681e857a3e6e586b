"""Files of the working folder that several trials write are told of once, and no others."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from controllers.core import labels
from controllers.core.model import Phase
from controllers.local_run.shared_files import SharedFilesWatch, written_by_us
from controllers.worlds.local.changed_files import MOST_FILES, Look, Looking
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract

FOLDER = Path("/project")


class Sweep:
    """Trials and files as a test says; times are seconds since 1970 and of the sweep at once."""

    def __init__(self, **params: Mapping[str, object]) -> None:
        self.params = params
        self.jobs: dict[str, LocalJob] = {}
        self.files: dict[str, float] = {}
        self.watch = SharedFilesWatch(FOLDER, str, 0.0, looking=lambda *_: cast("Looking", self))

    def go_on(self, _: float) -> Look:
        return Look(dict(self.files), whole=True, took_s=0.0)

    def start(self, now: float, *names: str) -> None:
        for name in names:
            env = {contract.ENV_TRIAL_ID: name, contract.ENV_PARAMS: json.dumps(self.params.get(name, {}))}
            step = PodStep(name, "t", (), env=env, labels={labels.LABEL_SWEEP: "s"})
            attempt = self.jobs[name].attempt + 1 if name in self.jobs else 1
            self.jobs[name] = LocalJob(step, 0.0, 0.1, phase=Phase.RUNNING, attempt=attempt, started_at=now)

    def end(self, now: float, *names: str, phase: Phase = Phase.SUCCEEDED) -> None:
        for name in names:
            job = self.jobs[name]
            self.jobs[name] = LocalJob(
                job.step, 0.0, 0.1, phase=phase, attempt=job.attempt, started_at=job.started_at, ended_at=now
            )

    def look(self, now: float, *written: str, last: bool = False) -> list[str]:
        """Let files be written, and return the warnings of the look that follows."""
        self.files |= dict.fromkeys(written, now)
        return list(self.watch.look(now + 0.1, self.jobs.values(), float, last=last))


def test_a_file_that_two_trials_wrote_one_after_the_other_is_told_once_with_both() -> None:
    it = Sweep()
    it.start(0, "t0")
    assert it.look(1, "model.pt") == []
    it.end(2, "t0")
    it.start(3, "t1")
    (told,) = it.look(4, "model.pt")
    assert told.startswith("several trials wrote /project/model.pt: t0, t1 ran when it changed.")
    assert "$(SPECON_TRIAL_FOLDER)" in told
    assert "docs/how-to/keep-trials-files-apart.md" in told
    assert it.look(5, "model.pt") == it.look(6, "model.pt", last=True) == []


def test_trials_side_by_side_that_end_with_one_file_are_told() -> None:
    it = Sweep()
    it.start(0, "t0", "t1")
    assert it.look(1, "out/best.pt") == it.look(2, "out/best.pt") == []
    it.end(3, "t0", "t1")
    (told,) = it.look(4)
    assert told.startswith("several trials seem to write /project/out/best.pt: t0, t1 ran")


@pytest.mark.parametrize(
    "names",
    [
        ("model-0.1.pt", "model-0.2.pt"),
        ("lstm/model.pt", "gru/model.pt"),
        ("log_LSTM_final.txt", "log_GRU_final.txt"),
        ("outputs/2026-01-01/12-00-00/train.log", "outputs/2026-01-01/12-00-01/train.log"),
        ("lightning_logs/version_0/metrics.csv", "lightning_logs/version_1/metrics.csv"),
        ("runs/ab12cd34/log.txt", "runs/9f8e7d6c/log.txt"),
    ],
)
def test_trials_that_each_wrote_a_file_of_their_own_are_not_told_of(names: tuple[str, str]) -> None:
    it = Sweep(t0={"cell": "lstm", "lr": 0.1}, t1={"cell": "gru", "lr": 0.2})
    it.start(0, "t0", "t1")
    assert it.look(1, *names) == it.look(2, *names) == []
    it.end(3, "t0", "t1")
    assert it.look(4, last=True) == []


def test_two_of_three_trials_that_took_the_same_number_are_told() -> None:
    it = Sweep()
    it.start(0, "t0", "t1", "t2")
    files = ("logs/version_0/metrics.csv", "logs/version_1/metrics.csv")
    assert it.look(1, *files) == it.look(2, *files) == []
    it.end(3, "t0", "t1", "t2")
    assert len(it.look(4)) == 2


def test_a_file_of_one_trial_over_its_attempts_and_one_of_nobody_are_not_told_of() -> None:
    it = Sweep()
    it.start(0, "t0")
    assert it.look(1, "model.pt") == []
    it.end(2, "t0", phase=Phase.SUSPENDED)
    assert it.look(3, "notes.txt") == []
    it.start(4, "t0")
    it.start(4, "t1")
    assert it.look(5, "model.pt") == it.look(6, "notes.txt") == []


def test_of_many_files_a_few_are_named_and_the_rest_counted() -> None:
    it, files = Sweep(), [f"f{n}.bin" for n in range(9)]
    it.start(0, "t0")
    it.look(1, *files)
    it.end(2, "t0")
    it.start(3, "t1")
    assert len(it.look(4, *files)) == 5
    assert it.look(5, last=True) == [
        "several trials wrote 4 other files of /project, too (docs/how-to/keep-trials-files-apart.md)"
    ]


def changed(folder: Path, leave_out: Sequence[Path] = (), since: float = 0.0, most: int = MOST_FILES) -> Look:
    look = Looking(folder, since, written_by_us(leave_out), most).go_on(60.0)
    assert look is not None
    return look


def test_a_look_finds_what_trials_write_and_nothing_of_tools_or_behind_links(tmp_path: Path) -> None:
    outside, project = tmp_path / "outside", tmp_path / "project"
    found = ["model.pt", "out/a/b/ckpt.pt", "results.csv"]
    left = ["train.py", ".git/index", ".specon/x.json", "env/lib/y.txt", "mlflow.db", "mlflow.db-wal", "a.lock"]
    for name in [*found, *left, "env/pyvenv.cfg"]:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    outside.mkdir()
    (outside / "big.bin").write_text("x")
    (project / "data").symlink_to(outside)
    (project / "link.bin").symlink_to(outside / "big.bin")
    look = changed(project, [project / ".specon"])
    assert (sorted(look.changed), look.whole) == (sorted(found), True)
    assert changed(project, since=time.time() + 1).changed == {}


def test_a_look_is_bounded_and_says_so(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.bin").touch()
    look = changed(tmp_path, most=10)
    assert (len(look.changed), look.whole) == (10, False)
    assert sum(looked is None for looked in map(Looking(tmp_path, 0.0).go_on, [0.0, 0.0, 60.0])) == 2
    deep = tmp_path.joinpath(*"abcdefghijklm" * 6)
    deep.mkdir(parents=True)
    (deep / "x.bin").touch()
    assert not changed(tmp_path).whole


def test_what_the_sweeps_own_command_is_piped_into_is_no_file_of_trials(tmp_path: Path) -> None:
    body = (
        "import sys; from pathlib import Path; from controllers.local_run.shared_files import written_by_us as w; "
        "from controllers.worlds.local.changed_files import Looking as L; "
        "print(sorted(L(Path('.'), 0.0, w([])).go_on(60).changed), file=sys.stderr)"
    )
    (tmp_path / "model.pt").touch()
    shell = f'{sys.executable} -c "{body}" 2>&1 >log.txt | tee tee.txt'
    root = Path(__file__).resolve().parents[3]
    ended = subprocess.run(
        ["/bin/sh", "-c", shell],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        start_new_session=True,
        check=True,
        timeout=60,
    )
    assert ended.stdout == "['model.pt']\n", ended.stderr
