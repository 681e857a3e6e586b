"""A ledger may be read after a reboot, or on another machine that shares its folder: it kills nobody else's process."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controllers.worlds.local.attempts import end_leftovers
from controllers.worlds.local.jobs import load_ledger, save_ledger
from controllers.worlds.local.processes import ProcessMark
from tests.cases.local_trials import LocalTrial

SAVES = """
import signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True: time.sleep(0.1)
"""


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", SAVES]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.parametrize(
    "change",
    [
        {"boot": "0" * 36},
        {"namespace": "pid:[1]"},
        {"started": 1},
        {"boot": ""},
        {"started": 0},
        {"pid": 0},
    ],
    ids=["another boot or machine", "another container", "a later process", "no boot", "no time", "no number"],
)
def test_nobody_is_ended_who_is_not_surely_the_one_that_was_started(
    stranger: "subprocess.Popen[str]", change: dict[str, str | int]
) -> None:
    mark = ProcessMark.of(stranger.pid)
    assert mark.alive
    other = replace(mark, **change)  # type: ignore[arg-type]
    assert not other.alive
    end_leftovers([other], 0.0)
    time.sleep(0.1)
    assert stranger.poll() is None


def test_an_attempt_that_was_left_behind_saves_before_it_ends(stranger: "subprocess.Popen[str]") -> None:
    end_leftovers([ProcessMark.of(stranger.pid)], 30.0)
    assert stranger.wait(30) == 75
    assert stranger.stdout is not None
    assert stranger.stdout.read() == "saved\n"


def test_a_ledger_keeps_what_tells_its_processes_from_others(local_trial: LocalTrial, tmp_path: Path) -> None:
    trial = local_trial.start([sys.executable, "-c", SAVES])
    trial.until_said("ready")
    path = tmp_path / "ledger.json"
    save_ledger(path, trial.world.ledger)
    (job,) = load_ledger(path).jobs.values()
    assert [one.pid for one in job.processes] == list(job.pids)
    assert all(one.alive for one in job.processes)


def test_a_ledger_of_bare_numbers_names_nobody(local_trial: LocalTrial, tmp_path: Path) -> None:
    trial = local_trial.start([sys.executable, "-c", SAVES])
    trial.until_said("ready")
    path = tmp_path / "ledger.json"
    save_ledger(path, trial.world.ledger)
    written = json.loads(path.read_text())
    for job in written["jobs"].values():
        del job["processes"], job["gained"], job["barren"]
    path.write_text(json.dumps(written))
    (job,) = load_ledger(path).jobs.values()
    assert job.pids
    assert job.processes == ()
