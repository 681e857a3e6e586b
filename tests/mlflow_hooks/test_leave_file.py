"""An attempt in a pod leaves where a file names it, which Kubernetes replaces: no signal need reach it."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mlflow_hooks import MigrationExit, leave_file, trial
from tests.mlflow_hooks.hook_jobs import JOBS, RunJob, StartJob, job_environment, wait_for

ATTEMPT = "0b1c7e3a-1111-4222-8333-944445555666"
LONG = {"JOB_STEPS": "100000", "JOB_SLEEP_S": "0.01"}


class Shown:
    """A folder in which a kubelet shows an annotation: behind a link to a folder that it replaces as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._times = 0
        folder.mkdir()
        self.show(b"")
        (folder / "leave").symlink_to("..data/leave")

    @property
    def file(self) -> str:
        return str(self._folder / "leave")

    def show(self, content: bytes) -> None:
        """Show another content, in one step."""
        self._times += 1
        name = f"..2026_11_27_{self._times}"
        (self._folder / name).mkdir()
        (self._folder / name / "leave").write_bytes(content)
        link = self._folder / "..data_tmp"
        link.symlink_to(name)
        link.rename(self._folder / "..data")


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "shown")


@pytest.fixture
def in_pod(shown: Shown, in_this_process: None, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Have ``trial()`` of this process see the file and look at it often; what started this process stays."""
    del in_this_process
    monkeypatch.setattr(leave_file.LeaveFile, "end_launcher", lambda _: None)
    monkeypatch.setenv("SPECON_ATTEMPT", ATTEMPT)
    monkeypatch.setenv("SPECON_LEAVE_FILE", shown.file)
    monkeypatch.setattr(leave_file, "LOOK_S", 0.01)
    return shown


def environment(shown: Shown, **more: str) -> dict[str, str]:
    return {"SPECON_ATTEMPT": ATTEMPT, "SPECON_LEAVE_FILE": shown.file, **more}


def steps_made(state_root: Path) -> int:
    journal = state_root / "s.a/points.jsonl"
    return journal.read_bytes().count(b'"key": "loss"') if journal.exists() else 0


def until_it_trains(state_root: Path) -> None:
    wait_for(lambda: steps_made(state_root) > 3)


def test_an_attempt_that_the_file_names_saves_exits_75_and_the_next_one_goes_on(
    start_job: StartJob, run_job: RunJob, state_root: Path, shown: Shown
) -> None:
    job = start_job("plain", "s.a", **environment(shown, **LONG))
    until_it_trains(state_root)
    shown.show(ATTEMPT.encode())
    _, err = job.communicate(timeout=60)
    assert job.returncode == 75, err
    done = steps_made(state_root)
    # What still stands in the file is for an attempt that is over by now.
    again = run_job("plain", "s.a", **environment(shown, JOB_STEPS=str(done + 5)) | {"SPECON_ATTEMPT": "another"})
    assert (again.code, again.out["start"], again.out["total"]) == (0, str(done), str(sum(range(done + 5))))


def test_a_request_that_came_before_the_training_began_is_heard(run_job: RunJob, shown: Shown) -> None:
    shown.show(f"{ATTEMPT}\n".encode())
    assert run_job("plain", "s.a", **environment(shown, **LONG)).code == 75


def test_a_scripts_own_answer_to_sigterm_is_the_answer_to_the_file_too(in_pod: Shown) -> None:
    heard: list[int] = []

    def train() -> None:
        with trial() as t:
            signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
            for step in t.steps(100_000):
                if step == 3:
                    in_pod.show(ATTEMPT.encode())
                time.sleep(0.01)
                if heard:
                    sys.exit(1)

    with pytest.raises(MigrationExit):
        train()
    assert heard == [signal.SIGTERM]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"another-attempt",
        ATTEMPT.encode()[:-1],
        ATTEMPT.encode() + b"0",
        ATTEMPT.encode() + b"\n" + ATTEMPT.encode(),
        b"\xff\x00" * 300,
        b" " * 2**20 + ATTEMPT.encode(),
    ],
    ids=["nothing", "another", "a-part", "more", "twice", "no-text", "beyond-the-bound"],
)
def test_whatever_else_stands_in_the_file_ends_nothing(in_pod: Shown, content: bytes) -> None:
    read: list[int] = []
    with trial() as t:
        for step in t.steps(20):
            if step == 5:
                in_pod.show(content)
            time.sleep(0.01)
            read.append(step)
        assert not t.stopping
    assert read == list(range(20))


@pytest.mark.parametrize("what", ["missing", "a-folder", "a-pipe"])
def test_a_file_that_is_none_ends_nothing(
    in_pod: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    del in_pod
    place = tmp_path / what
    if what == "a-folder":
        place.mkdir()
    elif what == "a-pipe":
        os.mkfifo(place)
    monkeypatch.setenv("SPECON_LEAVE_FILE", str(place))
    with trial() as t:
        assert list(t.steps(20)) == list(range(20))


def test_a_trial_off_the_main_thread_leaves_too(in_pod: Shown) -> None:
    ends: list[BaseException] = []

    def train() -> None:
        try:
            with trial() as t:
                for step in t.steps(100_000):
                    if step == 3:
                        in_pod.show(ATTEMPT.encode())
                    time.sleep(0.01)
        except BaseException as error:  # noqa: BLE001 - looked at below
            ends.append(error)

    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        thread = threading.Thread(target=train)
        thread.start()
        thread.join(30)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [type(end) for end in ends] == [MigrationExit]


@pytest.mark.parametrize(
    "gone", ["SPECON_LEAVE_FILE", "SPECON_ATTEMPT", "LOCAL_RANK"], ids=["no-pod", "by-hand", "not-the-first"]
)
def test_nothing_looks_where_nobody_may_be_asked_so(in_pod: Shown, monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    del in_pod
    if gone == "LOCAL_RANK":
        monkeypatch.setenv(gone, "1")
    else:
        monkeypatch.delenv(gone)
    with trial() as t:
        assert list(t.steps(3)) == [0, 1, 2]
        assert "mlflow-hooks-leave" not in [thread.name for thread in threading.enumerate()]


def test_the_looks_end_with_the_training(in_pod: Shown) -> None:
    del in_pod
    with trial() as t:
        assert "mlflow-hooks-leave" in [thread.name for thread in threading.enumerate()]
        assert list(t.steps(3)) == [0, 1, 2]
    wait_for(lambda: "mlflow-hooks-leave" not in [thread.name for thread in threading.enumerate()])


@pytest.mark.parametrize("line", ["{job} | cat", "{job}; true"])
def test_a_shell_that_hides_the_exit_code_ends_by_sigterm_once_all_is_saved(
    state_root: Path, shown: Shown, line: str
) -> None:
    job = f"{sys.executable} {JOBS / 'plain_job.py'}"
    shell = subprocess.Popen(
        ["/bin/sh", "-c", line.format(job=job)],
        env=job_environment("s.a", state_root, environment(shown, **LONG)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until_it_trains(state_root)
        shown.show(ATTEMPT.encode())
        assert shell.wait(60) == -signal.SIGTERM
        steps = [path.name for path in (state_root / "s.a/checkpoints").iterdir()]
        assert f"step-{steps_made(state_root):08}" in steps
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)


def test_a_shell_around_a_trial_that_ends_well_is_left_alone(state_root: Path, shown: Shown) -> None:
    job = f"{sys.executable} {JOBS / 'plain_job.py'}"
    ended = subprocess.run(
        ["/bin/sh", "-c", f"{job} | cat"],
        env=job_environment("s.a", state_root, environment(shown)),
        stdout=subprocess.PIPE,
        check=False,
        start_new_session=True,
        timeout=120,
    )
    assert ended.returncode == 0
    assert b"total" in ended.stdout
