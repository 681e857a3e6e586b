"""Policies after the start: a comparison that grows, and a sweep that is given another policy while it runs."""

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = pytest.mark.slow

NODES = ("--nodes", "2", "--cpus-per-node", "0.4", "--plain", "--json", "out.json")


def test_a_policy_is_added_without_running_the_others_again(workbench: Workbench) -> None:
    workbench.write(steps=(15,), rates=(0.01, 0.02))
    done = workbench.run("run", "sweep.py", "--policy", "default", "--repeats", "2", *NODES)
    assert done.code == 0, done.output
    before = results(workbench.folder / "out.json")
    assert [run["policy"] for run in before] == ["default", "default #2"]
    done = workbench.run("run", "sweep.py", "--add-policy", "ahead", *NODES)
    assert done.code == 0, done.output
    assert "How the policies compare" in done.output
    after = results(workbench.folder / "out.json")
    assert [run["policy"] for run in after] == ["default", "default #2", "ahead"]
    assert [run["trials"] for run in after[:2]] == [run["trials"] for run in before]
    none = workbench.run("run", "sweep.py", "--add-policy", "ahead", "--seed", "9", *NODES)
    assert none.code != 0
    assert "no run in" in none.output


def test_a_sweep_that_runs_is_given_another_policy_and_ends_under_that(workbench: Workbench) -> None:
    workbench.write(steps=(400,), rates=(0.01, 0.02), cpu_ms=10)
    running = workbench.start("run", "sweep.py", "--policy", "default", *NODES)
    workbench.wait_for(lambda: workbench.steps_journalled() > 0)
    asked = workbench.run("set-policy", workbench.newest_run.name, "ahead")
    assert asked.code == 0, asked.output
    told, _ = running.communicate(timeout=120)
    assert running.returncode == 0, told
    assert "the policy is ahead from now on" in told
    (result,) = results(workbench.folder / "out.json")
    assert all(trial["succeeded"] and trial["attempts"] == 1 for trial in result["trials"])
