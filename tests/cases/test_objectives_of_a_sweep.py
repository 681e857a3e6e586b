"""Trials whose objective comes late, once, never, or from nobody: a sweep ends for itself alone, and tells of it."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.integration.workbench import ROOT, Finished, Workbench

pytestmark = pytest.mark.slow

_SWEEP = """
from hera.workflows import Resources, Workflow
from hera_specon import Sweep, choice, {direction}

with Workflow(generate_name="odd-", entrypoint="odd") as w:
    Sweep(name="odd", image="python:3.11", command=[{python!r}, "train.py"], space={{"k": choice(*range({trials}))}},
          search="grid", objective={direction}("val_loss"), retries=0, resources=Resources(cpu_request="100m"))
"""
_HOOKS = """
import argparse, math, time
from mlflow_hooks import trial
parser = argparse.ArgumentParser()
parser.add_argument("--k", type=int)
k = parser.parse_args().k
def _fails(step):
    if step == 3: raise MemoryError("out of memory")
with trial() as t:
    # The first ends while others go on.
    for step in t.steps(6 + 6 * k):
        time.sleep(0.1)
        t.log(train_loss=1.0)
        {body}
    {end}
"""
_PRINTED = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--k", type=int)
k = parser.parse_args().k
print("begins", k)
for epoch in range(3):
    {body}
{end}
"""
_PLAIN = """
import argparse, math, mlflow
parser = argparse.ArgumentParser()
parser.add_argument("--k", type=int)
k = parser.parse_args().k
for step in range(3):
    mlflow.log_metric("train_loss", 1.0, step=step)
    {body}
{end}
"""


def _run(
    bench: Workbench, script: str, *, body: str = "pass", end: str = "pass", up: bool = False, trials: int = 3
) -> Finished:
    sweep = _SWEEP.format(direction="maximize" if up else "minimize", python=sys.executable, trials=trials)
    (bench.folder / "sweep.py").write_text(sweep)
    (bench.folder / "train.py").write_text(script.format(body=body, end=end))
    return bench.run("run", "sweep.py", "--plain", "--nodes", "2", "--cpus-per-node", "0.4", "--json", "out.json")


def _result(folder: Path) -> dict[str, Any]:
    (run,) = json.loads((folder / "out.json").read_text())["runs"]
    return dict(run)


def test_a_trial_that_crashes_before_its_objective_fails_alone(workbench: Workbench) -> None:
    done = _run(workbench, _HOOKS, body="t.log(val_loss=1.0 / (step + 1)) if k != 1 else _fails(step)")
    assert done.code == 1, done.output
    ended = {trial["id"]: trial["final_metric"] for trial in _result(workbench.folder)["trials"] if trial["succeeded"]}
    assert ended == {"odd.t000": 1 / 6, "odd.t002": 1 / 18}
    assert "odd.t001 failed under ahead with exit code 1: MemoryError: out of memory" in done.output
    assert "no trial of" not in done.output


@pytest.mark.parametrize("script", [_HOOKS, _PLAIN], ids=["hooks", "plain"])
def test_an_objective_that_comes_once_at_the_end_counts(workbench: Workbench, script: str) -> None:
    log = "t.log(val_loss=0.5 + k)" if script is _HOOKS else "mlflow.log_metric('val_loss', 0.5 + k)"
    done = _run(workbench, script, end=log)
    assert done.code == 0, done.output
    assert [trial["final_metric"] for trial in _result(workbench.folder)["trials"]] == [0.5, 1.5, 2.5]


_LOGS = {
    "hooks": (_HOOKS, "t.log({name}=0.5 + k)"),
    "plain": (_PLAIN, "mlflow.log_metric('{name}', 0.5 + k)"),
    "printed": (_PRINTED, "print('epoch', epoch, '{name}:', 0.5 + k)"),
}


def _one_after_another(bench: Workbench, form: str, *options: str, objective: str = "val_loss", logs: str) -> Finished:
    """Train three trials one after the other; each notes that it has trained."""
    _write(bench, form, objective, logs=logs)
    return bench.run("run", "sweep.py", "--plain", "-j", "1", "--json", "out.json", *options)


def _write(bench: Workbench, form: str, objective: str = "val_loss", *, logs: str) -> None:
    script, log = _LOGS[form]
    sweep = _SWEEP.format(direction="minimize", python=sys.executable, trials=3).replace("val_loss", objective)
    (bench.folder / "sweep.py").write_text(sweep)
    end = f"print('the end of', k); open({str(bench.folder / 'trained')!r}, 'a').write(str(k))"
    (bench.folder / "train.py").write_text(script.format(body=log.format(name=logs), end=end).replace("6 + 6", "2 + 0"))


@pytest.mark.parametrize("form", _LOGS)
def test_an_objective_of_another_name_is_told_at_the_end_of_the_first_trial_and_no_other_begins(
    served: Workbench, form: str
) -> None:
    done = _one_after_another(served, form, logs="valid_loss")
    assert done.code == 1, done.output
    told = "odd.t000 ended well, but never logged its objective 'val_loss': it logged valid_loss"
    assert f"Warning: {told}" in done.output, done.output
    assert "(did you mean 'valid_loss'?)" in done.output
    assert "\n  the end of 0\n" in done.output
    assert "2 other trials did not begin" in done.output
    assert (served.folder / "trained").read_text() == "0"
    again = _one_after_another(served, form, logs="valid_loss")
    assert again.code == 1, again.output
    assert (served.folder / "trained").read_text() == "0", "the same mistake trains nothing"
    mended = _one_after_another(served, form, objective="valid_loss", logs="valid_loss")
    assert mended.code == 0, mended.output
    assert (served.folder / "trained").read_text() == "012", "nothing was trained twice"
    assert [trial["final_metric"] for trial in _result(served.folder)["trials"]] == [0.5, 1.5, 2.5]


def test_an_objective_that_does_not_show_trains_all_anyway_where_that_is_wanted(served: Workbench) -> None:
    done = _one_after_another(served, "hooks", "--yes", logs="valid_loss")
    assert done.code == 1, done.output
    assert "odd.t000 ended well, but never logged its objective 'val_loss'" in done.output
    assert "no trial of odd logged its objective 'val_loss'" in done.output
    assert "(did you mean 'valid_loss'?)" in done.output
    assert (served.folder / "trained").read_text() == "012"
    assert all(trial["succeeded"] for trial in _result(served.folder)["trials"])
    mended = _one_after_another(served, "hooks", objective="valid_loss", logs="valid_loss")
    assert mended.code == 0, mended.output
    assert (served.folder / "trained").read_text() == "012", (
        "a sweep that is over is judged once more, and trains nothing"
    )
    assert [trial["final_metric"] for trial in _result(served.folder)["trials"]] == [0.5, 1.5, 2.5]


def test_on_a_terminal_one_is_asked_whether_the_others_are_to_train(served: Workbench) -> None:
    ours, theirs = os.openpty()
    _write(served, "hooks", logs="valid_loss")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MLFLOW_TRACKING_URI": served.tracking_uri, "TERM": "xterm"}
    command = [sys.executable, "-m", "hera_specon.cli", "run", "sweep.py", "--plain", "--no-page", "-j", "1"]
    process = subprocess.Popen(command, cwd=served.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said, answered = b"", False
    with suppress(OSError):  # how a terminal ends
        while part := os.read(ours, 4096):
            said += part
            if not answered and b"Train the others as it is? [y/N]" in said:
                answered = True
                assert (served.folder / "trained").read_text() == "0"
                os.write(ours, b"y\n")
    assert process.wait() == 1, said.decode()
    assert answered, said.decode()
    assert (served.folder / "trained").read_text() == "012"


@pytest.mark.parametrize(("script", "up"), [(_HOOKS, True), (_PLAIN, False)], ids=["hooks", "plain"])
def test_an_objective_that_ends_infinite_or_as_no_number_is_diverged_and_never_the_best(
    workbench: Workbench, script: str, *, up: bool
) -> None:
    value = "0.1 * step if step < 2 else [0.5, math.inf, math.nan, -math.inf][k]"
    log = f"t.log(val_loss={value})" if script is _HOOKS else f"mlflow.log_metric('val_loss', {value}, step=step)"
    done = _run(workbench, script, body=log, up=up, trials=4)
    result = _result(workbench.folder)
    assert done.code == 0, done.output
    assert result["best"] == {"odd": "odd.t000"}
    assert result["diverged"] == ["odd.t001", "odd.t002", "odd.t003"]
