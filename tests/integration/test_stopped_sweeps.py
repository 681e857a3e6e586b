"""A sweep on this machine that its author's rule ends, interrupted in the middle, and resumed at last."""

import json
import signal
from pathlib import Path

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = pytest.mark.slow

NODES = ("--nodes", "2", "--cpus-per-node", "0.4", "--plain")
WHY = "reached 0.5"


def rule_of(text: str) -> str:
    """Return the text of a sweep of eight trials that ends at a value, two at a time."""
    text = text.replace("import Sweep, choice, every, minimize", "import Sweep, choice, minimize, value")
    text = text.replace("arrivals=every(0.5),", "stop=value(0.5),")
    return text.replace('cpu_request="50m"', 'cpu_request="400m"')


def test_a_sweep_ends_at_its_value_and_what_was_cut_short_can_be_trained_to_its_end(workbench: Workbench) -> None:
    workbench.write(steps=(400,), rates=(0.01, 0.011, 0.012, 0.013, 0.014, 0.015))
    sweep = workbench.folder / "sweep.py"
    sweep.write_text(rule_of(sweep.read_text()))
    done = workbench.run("run", "sweep.py", "--policy", "ahead", "--json", "out.json", *NODES)
    assert done.code == 0, done.output
    assert "descent was ended under ahead: 0." in done.output
    (run,) = results(workbench.folder / "out.json")
    assert WHY in run["ended"]["descent"]
    assert run["stopped"] == len(run["trials"]) == 6
    assert all(trial["succeeded"] and WHY in trial["stopped"] for trial in run["trials"])
    begun = [trial["id"] for trial in run["trials"] if trial["attempts"]]
    assert 0 < len(begun) < 6
    assert all(0 < len(steps) < 400 for steps in workbench.histories().values())
    status = workbench.run("status", workbench.newest_run.name)
    assert "descent was ended: 0." in status.output
    assert "Not trained to their end" in (workbench.newest_run / "report.html").read_text()

    resumed = workbench.run("resume", workbench.newest_run.name, "--trial", begun[0], "--plain")
    assert resumed.code == 0, resumed.output
    name = begun[0].rpartition(".")[2]
    (steps,) = (steps for trial, steps in workbench.histories().items() if trial.endswith(name))
    assert steps == list(range(400))


def test_a_sweep_that_was_interrupted_while_it_ended_ends_by_the_same_command(workbench: Workbench) -> None:
    workbench.write(steps=(4000,), rates=(0.001, 0.0011, 0.0012, 0.0013))
    command = ("run", "sweep.py", "--policy", "default", "--stop", "after=20s", *NODES)
    process = workbench.start(*command)
    try:
        workbench.wait_for(lambda: workbench.steps_journalled() > 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        done = workbench.run(*command, "--json", "out.json")
    finally:
        process.kill()
        process.communicate()
    assert done.code == 0, done.output
    (run,) = json.loads(Path(workbench.folder / "out.json").read_text())["runs"]
    assert run["ended"] == {"descent": "20 s have passed"}
    assert run["stopped"] == 4
