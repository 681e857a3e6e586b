"""Scripts without hooks that answer SIGTERM in ways of their own: asked, they wait and go on, and have not failed."""

import sys
from collections.abc import Mapping
from typing import Final

import pytest
from _pytest.mark import ParameterSet

from controllers.core.actions import Action, Migrate, Place, Stop, Suspend
from controllers.core.model import NodeName, Phase, Sample, TrialId
from tests.cases.local_trials import LocalTrial

TRAIN: Final = """
import os, signal, sys, threading, time
def leave(*_):
    print("saved the model of epoch", epoch, flush=True)
    {leaves}
signal.signal(signal.SIGTERM, leave)
for epoch in range(400):
    print("epoch", epoch, flush=True)
    if os.path.exists("enough"): break
    time.sleep(0.05)
print("trained to the end", flush=True)
"""
LEAVES: Final = {  # the quick ones first; the others are tried now and then
    "0": "sys.exit(0)",
    "1": "sys.exit(1)",
    "a KeyboardInterrupt": "raise KeyboardInterrupt",
    "0 past the handlers": "os._exit(0)",
    "SystemExit": "raise SystemExit",
    "an error": "raise RuntimeError('stopped')",
    "130": "sys.exit(130)",
    "3": "os._exit(3)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGABRT": "os.abort()",
    "the end of its loop": "open('enough', 'w').close()",
}


def some_of(cases: Mapping[str, object], quick: int) -> list[ParameterSet]:
    """Return all cases; only the first ``quick`` are tried each time."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), id=name, marks=[pytest.mark.slow] * (at >= quick))
        for at, (name, case) in enumerate(cases.items())
    ]


def asked(local_trial: LocalTrial, action: type[Action], leaves: str) -> LocalTrial:
    """Return a trial that was asked to leave after some epochs, and has left."""
    (local_trial.folder / "train.py").write_text(TRAIN.format(leaves=leaves))
    trial = local_trial.start([sys.executable, "train.py"])
    trial.until_said("epoch 3\n")
    assert trial.world.apply(_made(action, trial)).done
    trial.drive(lambda: trial.job.asked_at is None)
    return trial


def _made(action: type[Action], trial: LocalTrial) -> Action:
    name = trial.trial.id
    if action is Migrate:
        (target,) = {"node-1", "node-2"} - set(trial.trial.nodes)
        return Migrate(name, (NodeName(target),))
    return Stop(name, "enough") if action is Stop else Suspend(name)


@pytest.mark.parametrize("leaves", some_of(LEAVES, 3))
def test_a_script_that_was_asked_to_pause_waits_however_it_ends_and_has_not_failed(
    local_trial: LocalTrial, leaves: str
) -> None:
    trial = asked(local_trial, Suspend, leaves)
    assert (trial.job.phase, trial.job.failures, trial.job.attempt) == (Phase.SUSPENDED, 0, 1)
    (trial.folder / "enough").touch()
    assert trial.world.apply(Place(trial.trial.id, (NodeName("node-1"),))).done
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.exit_code, trial.job.failures) == (Phase.SUCCEEDED, 0, 0)
    assert trial.lines("trained to the end") != []


HOOKED: Final = """
import os, signal, sys, time
{before}
from mlflow_hooks import trial
with trial() as t:
    {within}
    for step in t.steps(400):
        t.log(loss=1.0)
        print("epoch", step, flush=True)
        if os.path.exists("enough"): break
        time.sleep(0.05)
print("trained to the end", flush=True)
"""
WAITS: Final = """
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
print("trained to the end", flush=True)
while not heard: time.sleep(0.05)
"""
OWN: Final = "signal.signal(signal.SIGTERM, lambda *_: os._exit(0))"


@pytest.mark.parametrize(("before", "within"), [(OWN, ""), ("", OWN)], ids=["before the hooks", "after the hooks"])
def test_hooks_that_saw_no_end_of_the_training_do_not_take_an_exit_code_of_0_for_it(
    local_trial: LocalTrial, before: str, within: str
) -> None:
    (local_trial.folder / "train.py").write_text(HOOKED.format(before=before, within=within))
    trial = local_trial.start([sys.executable, "train.py"])
    trial.until_said("epoch 3\n")
    assert trial.world.apply(Suspend(trial.trial.id)).done
    trial.drive(lambda: trial.job.asked_at is None)
    assert (trial.job.phase, trial.job.failures) == (Phase.SUSPENDED, 0)


def test_hooks_that_saw_the_end_of_the_training_are_believed(local_trial: LocalTrial) -> None:
    text = HOOKED.format(before="", within="").replace('print("trained to the end", flush=True)', WAITS)
    (local_trial.folder / "train.py").write_text(text)
    (local_trial.folder / "enough").touch()
    trial = local_trial.start([sys.executable, "train.py"])
    trial.until_said("trained to the end")
    assert trial.world.apply(Suspend(trial.trial.id)).done
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.attempt) == (Phase.SUCCEEDED, 1)


@pytest.mark.parametrize("leaves", ["sys.exit(0)", "raise KeyboardInterrupt"], ids=["0", "a KeyboardInterrupt"])
def test_a_script_that_was_asked_to_move_goes_on_elsewhere(local_trial: LocalTrial, leaves: str) -> None:
    trial = asked(local_trial, Migrate, leaves)
    (trial.folder / "enough").touch()
    trial.drive(lambda: trial.world.finished)
    job = trial.job
    assert (job.phase, job.failures, job.attempt, job.moves) == (Phase.SUCCEEDED, 0, 2, 1)


@pytest.mark.parametrize("leaves", ["sys.exit(0)", "sys.exit(1)"], ids=["0", "1"])
def test_a_script_that_was_asked_to_stop_is_stopped(local_trial: LocalTrial, leaves: str) -> None:
    trial = asked(local_trial, Stop, leaves)
    assert (trial.job.phase, trial.job.exit_code, trial.job.failures) == (Phase.STOPPED, 0, 0)


@pytest.mark.parametrize(
    ("step", "of_another", "phase"), [(23, 23, Phase.SUCCEEDED), (11, 23, Phase.SUSPENDED), (23, None, Phase.SUSPENDED)]
)
def test_one_that_told_as_many_values_as_another_that_succeeded_has_come_to_its_end(
    local_trial: LocalTrial, step: int, of_another: int | None, phase: Phase
) -> None:
    told = {TrialId("uid.sweep.a"): step} | ({} if of_another is None else {TrialId("uid.sweep.b"): of_another})
    (local_trial.folder / "train.py").write_text(TRAIN.format(leaves="sys.exit(0)"))
    trial = local_trial.start([sys.executable, "train.py"], beside=["true"])
    trial.world.newest = lambda: samples(told)
    trial.until_said("epoch 3\n")
    trial.drive(lambda: [job.phase for job in trial.world.jobs()] == [Phase.RUNNING, Phase.SUCCEEDED])
    assert trial.world.apply(Suspend(trial.trial.id)).done
    trial.drive(lambda: trial.job.asked_at is None)
    assert trial.job.phase is phase


def samples(told: Mapping[TrialId, int]) -> dict[TrialId, Sample]:
    return {trial: Sample(value=1.0, step=step, at=0.0) for trial, step in told.items()}


ENDS: Final = {  # likewise
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", 4, False),
    "SIGSEGV": ("os.kill(os.getpid(), signal.SIGSEGV)", 2, True),
    "143, in other words each time": ("print(os.getpid(), flush=True); sys.exit(143)", 4, False),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", 4, False),
    "SIGABRT": ("os.abort()", 2, True),
    "a KeyboardInterrupt": ("raise KeyboardInterrupt", 2, True),
    "130": ("sys.exit(130)", 2, True),
    "3": ("sys.exit(3)", 2, True),
    "SIGSEGV, in other words each time": (
        "print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSEGV)",
        4,
        False,
    ),
    "130, in other words each time": ("print(os.getpid(), flush=True); sys.exit(130)", 4, False),
}


@pytest.mark.parametrize(("ends", "attempts", "given_up"), some_of(ENDS, 3))
def test_a_script_that_ends_by_itself_is_tried_as_often_as_its_retries_say(
    local_trial: LocalTrial,
    ends: str,
    attempts: int,
    given_up: bool,  # noqa: FBT001 - as parametrized
) -> None:
    (local_trial.folder / "train.py").write_text(f"import os, signal, sys\nprint('loss: 1', flush=True)\n{ends}\n")
    trial = local_trial.start([sys.executable, "train.py"], retries=3)
    trial.drive(lambda: trial.world.finished)
    job = trial.job
    assert (job.phase, job.attempt, job.failures, job.given_up) == (Phase.FAILED, attempts, attempts, given_up)


def test_a_shell_that_ends_its_group_is_tried_as_often_as_its_retries_say(local_trial: LocalTrial) -> None:
    trial = local_trial.start(["bash", "-c", "trap 'kill 0' EXIT; echo trained"], retries=3)
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.attempt) == (Phase.FAILED, 4)
