"""What the local world refuses before anything starts."""

from pathlib import Path
from typing import Any

import pytest
from hera.workflows import Resources, Workflow

from controllers.core.errors import SpeconError
from controllers.local_run.checks import check_sweep, left_aside
from controllers.local_run.order import LocalSettings, Order
from controllers.policies.registry import parse_policy
from controllers.worlds.local.room import Machine
from controllers.worlds.local.workflow import read_workflow
from hera_specon import Sweep, choice, minimize
from tests.hera_specon.built_sweeps import sweep


def check(*command: str, **settings: Any) -> int:  # noqa: ANN401 - as Sweep takes them
    with Workflow(name="w", entrypoint="s") as w:
        Sweep(
            name="s", image="i", command=list(command), space={"a": choice(1, 2)}, search="grid",
            objective=minimize("loss"), **settings,
        )  # fmt: skip
    machine = Machine({"node-1": 0.4, "node-2": 0.25}, 1e12)
    program = read_workflow(w.to_dict(), "s", "uid", {}, list(machine.nodes.values()))
    return len(check_sweep(program, machine, "sweep.py"))


def test_a_command_that_is_not_on_this_machine_is_refused_by_name() -> None:
    with pytest.raises(SpeconError, match="there is no command 'pyhton-3' on this machine"):
        check("pyhton-3", "train.py")


def test_commands_of_the_path_and_paths_are_taken() -> None:
    assert check("true") == 2
    assert check("/bin/sh", "-c", "exit 0") == 2


def test_more_workers_than_the_nodes_hold_together_are_refused() -> None:
    tenth = Resources(cpu_request="100m")
    assert check("true", workers=6, resources=tenth) == 2
    assert check("true", workers=(6, 9), resources=tenth) == 2
    for workers in (7, (7, 9)):
        with pytest.raises(
            SpeconError, match=r"needs 7 workers with 0.1 cores .*: more than the nodes hold, which is 6"
        ):
            check("true", workers=workers, resources=tenth)


def test_a_trial_that_names_no_request_fits_wherever_its_workers_do() -> None:
    assert check("true") == 2
    assert check("true", workers=6) == 2


def test_selectors_of_nodes_are_left_aside_and_said_so() -> None:
    spec = {
        "affinity": {"nodeAffinity": {}},
        "templates": [{"name": "a", "nodeSelector": {"gpu": "yes"}}, {"name": "b"}],
    }
    assert left_aside({"spec": spec}) == [
        "affinity of the workflow is left aside: nodes here are slices of this machine",
        "nodeSelector of template 'a' is left aside: nodes here are slices of this machine",
    ]


def test_a_policy_that_takes_one_objective_is_refused_by_name_where_there_are_several() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(objective=None, objectives=[minimize("loss"), minimize("latency")], command=["true"])
    policies = [parse_policy("optuna:pruner=median+ahead")]
    with pytest.raises(SpeconError, match="policy 'optuna' takes no sweep of several objectives"):
        Order(w.to_dict(), Path("sweep.py"), policies, LocalSettings()).checked()
    assert len(Order(w.to_dict(), Path("sweep.py"), [parse_policy("ahead")], LocalSettings()).checked()) == 3
