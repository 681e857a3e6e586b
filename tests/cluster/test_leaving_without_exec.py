"""Sweeps under a Role without exec and evictions: trials move, rest and stop since their pods show an annotation."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from controllers.core import labels
from controllers.worlds.argo.calls.api import WORKFLOWS
from tests.cluster.sweeps import gang_descent_sweep
from tests.cluster.sweeps.bench import STARTS_WITHIN_S, Bench, Workflow
from tests.cluster.sweeps.pods_seen import SeenPod
from tests.cluster.sweeps.proofs import MOVED, check_journal, check_nothing_left, check_whole
from tests.manifests.kustomize import of_kind, render, variation

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
WITHOUT = ("without-exec", "without-eviction")
SHOWN_WITHIN_S = 150.0
# Two and a half minutes: kubelets may show an annotation to a pod as late as after one and a half.
LONG = 600


@pytest.fixture
def poor(bench: Bench, tmp_path: Path) -> Bench:
    """A bench whose controller may neither exec nor evict."""
    folder = tmp_path / "poor"
    folder.mkdir()
    grant(bench, variation(folder, "namespaced", WITHOUT))
    return bench


def grant(bench: Bench, folder: Path) -> None:
    """Give the controller of a bench the role ``act`` of a kustomization."""
    (role,) = [one for one in of_kind(render(folder), "Role") if one["metadata"]["name"] == "specon-controller-act"]
    given: dict[str, Any] = {**role, "metadata": {"name": role["metadata"]["name"], "namespace": bench.namespace}}
    bench.kubectl("replace", "--filename", "-", text_input=json.dumps(given))


def ask(bench: Bench, workflow: Workflow, **asked: str) -> None:
    """Ask for trials to pause or to stop, as ``specon pause`` and ``specon stop`` do; nothing lets all go on."""
    text = json.dumps({f"descent.{trial}": what for trial, what in asked.items()})
    notes = {"metadata": {"annotations": {labels.ANNOTATION_ASKED: text}}}
    bench.api.patch(WORKFLOWS.path(bench.namespace, workflow.name), notes)


def rests(bench: Bench, workflow: Workflow, trial: str, pods: int = 1) -> Callable[[], bool]:
    """Return whether all pods of a trial's newest attempt wait behind their gates."""

    def resting() -> bool:
        newest = bench.pods.of(workflow.name, trial)[-pods:]
        return len(newest) == pods and all(pod.gated for pod in newest)

    return resting


def goes_on(bench: Bench, workflow: Workflow, pod: SeenPod) -> SeenPod:
    """Wait until a later attempt of a pod's trial runs, and return it."""

    def started() -> bool:
        newest = bench.running(workflow).get(pod.trial)
        return newest is not None and newest.uid != pod.uid

    bench.wait(started, f"{pod.trial} goes on in another pod", SHOWN_WITHIN_S)
    return bench.running(workflow)[pod.trial]


def tell_seconds(bench: Bench, road: str, pod: SeenPod) -> None:
    """Print how long it took from the mark of a move until the program was asked, and until it had left."""
    said, marked = bench.moments_said(pod), pod.moments["marked"]
    click.echo(f"{road}: asked after {said['asked'] - marked:.2f} s, left after {said['left'] - marked:.2f} s")


@pytest.mark.parametrize("road", ["exec", "annotation"])
def test_a_trial_moves_by_either_road_and_is_whole(bench: Bench, tmp_path: Path, road: str) -> None:
    folder = tmp_path / road
    folder.mkdir()
    grant(bench, variation(folder, "namespaced", WITHOUT if road == "annotation" else ()))
    controller = bench.controller().start()
    controller.wait_ready()
    workflow = bench.submit(steps=LONG)
    bench.wait_all_training(workflow, steps=20)
    for pod, target in [bench.begin_move(workflow, trial) for trial in ("t001", "t002", "t003")]:
        successor = goes_on(bench, workflow, pod)
        assert (pod.exit_code, successor.node) == (MOVED, target)
        assert bool(pod.annotation(labels.ANNOTATION_LEAVE)) is (road == "annotation")
        tell_seconds(bench, road, pod)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    told = [line["message"] for line in controller.lines()]
    by = "signals" if road == "exec" else "an annotation"
    assert any(f"asked to leave by {by}" in line for line in told), told
    check_nothing_left(bench, workflow)


def test_a_trial_rests_and_goes_on_without_exec(poor: Bench) -> None:
    poor.controller().start().wait_ready()
    workflow = poor.submit(steps=LONG)
    poor.wait_all_training(workflow, steps=20)
    poor.wait(lambda: poor.adopted(workflow), "the controller steers the workflow", 60)
    pod = poor.running(workflow)["t001"]
    ask(poor, workflow, t001="pause")
    poor.wait(rests(poor, workflow, "t001"), "t001 rests", SHOWN_WITHIN_S)
    assert pod.exit_code == MOVED
    done = poor.steps_done(workflow, "t001")
    time.sleep(5)
    assert poor.steps_done(workflow, "t001") == done
    ask(poor, workflow)
    goes_on(poor, workflow, pod)
    poor.wait_for_end(workflow)
    check_whole(poor, workflow)
    check_nothing_left(poor, workflow)


def test_trials_that_run_and_that_rest_are_stopped_without_exec_and_evictions(poor: Bench) -> None:
    poor.controller().start().wait_ready()
    workflow = poor.submit(steps=LONG)
    poor.wait_all_training(workflow, steps=20)
    poor.wait(lambda: poor.adopted(workflow), "the controller steers the workflow", 60)
    ask(poor, workflow, t001="pause")
    poor.wait(rests(poor, workflow, "t001"), "t001 rests", SHOWN_WITHIN_S)
    ask(poor, workflow, t001="stop", t002="stop")
    poor.wait_for_end(workflow)
    assert poor.phase(workflow) == "Succeeded"
    for trial in ("t001", "t002"):
        assert 20 <= poor.steps_done(workflow, trial) < workflow.steps
        assert poor.pods.of(workflow.name, trial)[-1].exit_code == 0
    for trial in ("t000", "t003"):
        check_journal(poor.trial_folder(workflow, trial), workflow.steps)
    check_nothing_left(poor, workflow)


def test_a_gang_rests_and_goes_on_as_one_without_exec(poor: Bench) -> None:
    poor.controller().start().wait_ready()
    workflow = poor.submit(gang_descent_sweep, steps=LONG)
    (trial,), workers = workflow.trials, gang_descent_sweep.WORKERS
    poor.wait(lambda: poor.steps_done(workflow, trial) >= 20, "the gang trains", STARTS_WITHIN_S)
    poor.wait(lambda: poor.adopted(workflow), "the controller steers the workflow", 60)
    first = poor.pods.of(workflow.name, trial)
    ask(poor, workflow, **{trial: "pause"})
    poor.wait(lambda: all(pod.exit_code == MOVED for pod in first), "all workers have left", SHOWN_WITHIN_S)
    assert len(first) == workers
    assert len({pod.annotation(labels.ANNOTATION_LEAVE) for pod in first}) == 1
    ask(poor, workflow)
    poor.wait_for_end(workflow)
    assert poor.phase(workflow) == "Succeeded", poor.story()
    check_journal(poor.trial_folder(workflow, trial), workflow.steps)
    check_nothing_left(poor, workflow)
