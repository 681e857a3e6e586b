"""Trials that are added to a sweep that is over: only these are trained."""

import pytest

from tests.integration.workbench import Workbench, assert_whole, results

pytestmark = pytest.mark.slow

NODES = ("--nodes", "2", "--cpus-per-node", "0.4", "--plain", "--json", "out.json")


def test_trials_are_added_under_each_policy_of_a_run_without_training_the_others_again(workbench: Workbench) -> None:
    workbench.write(steps=(15,), rates=(0.01, 0.02))
    done = workbench.run("run", "sweep.py", "--policy", "default", "--policy", "ahead", *NODES)
    assert done.code == 0, done.output
    before = results(workbench.folder / "out.json")
    none_left = workbench.run("run", "sweep.py", "--extend", *NODES)
    assert none_left.code != 0
    assert "has all 2 trials of" in none_left.output

    workbench.write(steps=(15,), rates=(0.01, 0.02, 0.03))
    done = workbench.run("run", "sweep.py", "--extend", *NODES)
    assert done.code == 0, done.output
    after = results(workbench.folder / "out.json")
    assert [run["policy"] for run in after] == ["default", "ahead"]
    for old, new in zip(before, after, strict=True):
        assert new["trials"][: len(old["trials"])] == old["trials"]
        assert [trial["params"]["lr"] for trial in new["trials"]] == [0.01, 0.02, 0.03]
    assert_whole(workbench.histories(), {15: 6})
    assert len(list((workbench.folder / ".specon" / "runs").iterdir())) == 1

    workbench.write(steps=(15,), rates=(0.05, 0.02, 0.03, 0.04))
    other = workbench.run("run", "sweep.py", "--extend", *NODES)
    assert other.code != 0
    assert "its trial descent.t000 is not the one of sweep.py" in other.output
