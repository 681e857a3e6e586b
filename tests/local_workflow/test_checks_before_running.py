"""What the local world refuses before anything starts."""

import pytest
from hera.workflows import Workflow

from controllers.core.errors import SpeconError
from controllers.local_run.checks import check_sweep, left_aside
from controllers.worlds.local.workflow import read_workflow
from hera_specon import Sweep, choice, minimize


def check(*command: str) -> int:
    with Workflow(name="w", entrypoint="s") as w:
        Sweep(
            name="s", image="i", command=list(command), space={"a": choice(1, 2)}, search="grid",
            objective=minimize("loss"),
        )  # fmt: skip
    return len(check_sweep(read_workflow(w.to_dict(), "s", "uid", {}), {"node-1": 4.0}, 1e12, "sweep.py"))


def test_a_command_that_is_not_on_this_machine_is_refused_by_name() -> None:
    with pytest.raises(SpeconError, match="there is no command 'pyhton-3' on this machine"):
        check("pyhton-3", "train.py")


def test_commands_of_the_path_and_paths_are_taken() -> None:
    assert check("true") == 2
    assert check("/bin/sh", "-c", "exit 0") == 2


def test_selectors_of_nodes_are_left_aside_and_said_so() -> None:
    spec = {
        "affinity": {"nodeAffinity": {}},
        "templates": [{"name": "a", "nodeSelector": {"gpu": "yes"}}, {"name": "b"}],
    }
    assert left_aside({"spec": spec}) == [
        "affinity of the workflow is left aside: nodes here are slices of this machine",
        "nodeSelector of template 'a' is left aside: nodes here are slices of this machine",
    ]
