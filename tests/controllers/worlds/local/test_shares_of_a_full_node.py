"""Where more is requested of a node than it has, shares can still shrink."""

from dataclasses import replace

import pytest

from controllers.core import labels
from controllers.core.model import Phase
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.room import Machine, Room
from controllers.worlds.local.workflow import PodStep

NODE = "node-1"


def job(name: str, cpu: float) -> LocalJob:
    step = PodStep(name, "train", ("true",), labels={labels.LABEL_SWEEP: "s"}, cpu=1.0, cpu_guessed=True)
    return replace(LocalJob(step, 0.0, cpu), phase=Phase.RUNNING, nodes=(NODE,), attempt=1)


@pytest.mark.parametrize(("cpu", "fits"), [(0.1, True), (1.0, True), (1.1, False)])
def test_a_share_of_a_node_on_which_too_much_is_requested_may_become_smaller_and_not_larger(
    cpu: float,
    fits: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    jobs = [job(name, 1.0) for name in "abcd"]
    assert (Room(Machine({NODE: 2.0}, 1e9), jobs).why_no_resize(jobs[0], cpu) is None) is fits
