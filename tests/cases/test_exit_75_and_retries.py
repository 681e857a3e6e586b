"""What uses up a trial's retries: failures of its own, and attempts that leave unasked and gain nothing."""

import os
import signal
import sys

import pytest

from controllers.core import after_attempt
from controllers.core.actions import Migrate
from controllers.core.after_attempt import MOST_BARREN, pause_s
from controllers.core.model import NodeName, Phase
from controllers.worlds.local.endings import steps_gained, true_code
from controllers.worlds.local.processes import Exit, proctree
from mlflow_hooks.presence import LEFT, TRAINING, Presence
from tests.cases.local_trials import LocalTrial

LEAVES = """
import os, sys
from pathlib import Path
from mlflow_hooks import trial
class Count:
    def save(self, folder): Path(folder, "n").touch()
    def load(self, folder): pass
with trial() as t:
    t.track(Count())
    print("begins at", t.next_step, flush=True)
    for step in t.steps({steps}):
        t.log(loss=1.0)
        if step == t.next_step and step in {leaves_at}:
            t.leave()
"""
WAITS = "import time; print('begins', flush=True); time.sleep(600)"
FAILS_ONCE = """
import time
from pathlib import Path
mark = Path("mark")
print("begins", flush=True)
if Path("go").exists():
    if not mark.exists():
        mark.touch()
        raise SystemExit(3)
    raise SystemExit(0)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_attempt, "FIRST_PAUSE_S", 0.01)


def test_a_program_that_leaves_by_itself_and_gains_nothing_fails_after_a_few_attempts(local_trial: LocalTrial) -> None:
    trial = local_trial.start(["sh", "-c", "echo no licence left, try later, says $$$$; exit 75"], retries=2)
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.exit_code, trial.job.failures) == (Phase.FAILED, 75, 3)
    assert trial.job.attempt == MOST_BARREN + 2


def test_the_same_last_words_again_end_it_sooner(local_trial: LocalTrial) -> None:
    trial = local_trial.start(["sh", "-c", "echo no licence left; exit 75"], retries=9)
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.given_up, trial.job.attempt) == (Phase.FAILED, True, MOST_BARREN + 1)


def test_a_program_that_leaves_by_itself_goes_on_as_long_as_it_gains_steps(local_trial: LocalTrial) -> None:
    leaves = LEAVES.format(steps=7, leaves_at=list(range(6)))
    (local_trial.folder / "train.py").write_text(leaves.replace("t.leave()", "t.note_step(step); t.leave()"))
    trial = local_trial.start([sys.executable, "train.py"])
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.failures) == (Phase.SUCCEEDED, 0)
    assert trial.lines("begins at") == [str(step) for step in range(7)]


def test_hooks_that_leave_at_the_same_step_again_and_again_gain_nothing(local_trial: LocalTrial) -> None:
    (local_trial.folder / "train.py").write_text(LEAVES.format(steps=9, leaves_at=[0]))
    trial = local_trial.start([sys.executable, "train.py"])
    trial.drive(lambda: trial.world.finished)
    # The first of them logged a point.
    assert (trial.job.phase, trial.job.attempt) == (Phase.FAILED, MOST_BARREN + 1)


def test_interruptions_and_moves_leave_the_retries_for_failures(local_trial: LocalTrial) -> None:
    (local_trial.folder / "train.py").write_text(FAILS_ONCE)
    trial = local_trial.start([sys.executable, "train.py"], retries=1)
    for attempt in (1, 2, 3):
        trial.drive(lambda attempt=attempt: len(trial.lines("begins")) == attempt)  # type: ignore[misc]
        trial.interrupt()
    trial.drive(lambda: len(trial.lines("begins")) == 4)
    (target,) = {"node-1", "node-2"} - set(trial.trial.nodes)
    (trial.folder / "go").touch()
    assert trial.world.apply(Migrate(trial.trial.id, (NodeName(target),))).done
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.failures, trial.job.attempt) == (Phase.SUCCEEDED, 1, 6)


def test_a_fork_server_that_is_killed_costs_no_retry(local_trial: LocalTrial) -> None:
    trial = local_trial.start([sys.executable, "-c", WAITS])
    trial.until_said("begins")
    (server,) = proctree.children(trial.launcher._servers[0]._process.pid)
    os.kill(server, signal.SIGKILL)
    trial.drive(lambda: len(trial.lines("begins")) == 2)
    assert (trial.job.failures, trial.job.attempt) == (0, 2)


def presence(doing: str, pid: int) -> Presence:
    return Presence("token", 0, pid, 1, doing)


@pytest.mark.parametrize(
    ("end", "said", "hooked", "code"),
    [
        pytest.param(Exit("a", 7, 0), presence(LEFT, 8), True, 75, id="left behind a pipe"),
        pytest.param(Exit("a", 7, 1), presence(LEFT, 8), True, 75, id="left behind torchrun"),
        pytest.param(Exit("a", 7, 137, asked=True), presence(LEFT, 8), True, 75, id="left, and its shell was killed"),
        pytest.param(Exit("a", 7, 0), presence(TRAINING, 8), True, 1, id="lost behind a pipe"),
        pytest.param(Exit("a", 7, 0, asked=True), presence(TRAINING, 8), True, 143, id="lost when asked"),
        pytest.param(Exit("a", 7, 0), presence(TRAINING, 7), True, 0, id="ended as it likes"),
        pytest.param(Exit("a", 7, 5), presence(TRAINING, 8), True, 5, id="failed"),
        pytest.param(Exit("a", 7, 0, asked=True, behind=True), None, True, 0, id="came to its end"),
        pytest.param(Exit("a", 7, 0, asked=True, behind=True), None, False, 143, id="nobody can tell"),
        pytest.param(Exit("a", 7, 75, asked=True, behind=True), None, False, 75, id="the shell tells"),
        pytest.param(Exit("a", 7, 0), None, False, 0, id="no hooks"),
    ],
)
def test_the_exit_code_is_that_of_the_program_that_trains(
    end: Exit,
    said: Presence | None,
    hooked: bool,  # noqa: FBT001
    code: int,
) -> None:
    assert true_code(end, said, hooked=hooked) == code


def test_pauses_grow_up_to_a_minute() -> None:
    pauses = [pause_s(barren) for barren in range(100)]
    assert pauses == sorted(pauses)
    assert pauses[0] == 0 < pauses[1]
    assert pauses[-1] <= 60


def test_what_a_trial_wrote_about_its_steps_may_be_anything(local_trial: LocalTrial) -> None:
    folder = local_trial.folder
    (folder / "checkpoints" / "step-x").mkdir(parents=True)
    (folder / "checkpoints" / "step-00000007").mkdir()
    (folder / "points.jsonl").write_bytes(
        b'\xff\n{"key": 3}\n[]\n{"key": "a", "value": 1, "step": 4, "timestamp": 1}\n{'
    )
    assert steps_gained(folder) == 7
    assert steps_gained(folder / "nowhere") == 0
