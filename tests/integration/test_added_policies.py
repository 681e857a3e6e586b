"""A comparison grows: by repeats, and by a policy that is added once it is over."""

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
