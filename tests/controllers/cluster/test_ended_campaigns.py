"""The controller ends a sweep by the rules of its author: also under another policy, and after a restart."""

import json
from collections.abc import Callable
from dataclasses import replace

from controllers.core import labels
from controllers.core.actions import Stop
from controllers.core.model import Phase, TrialId
from controllers.core.stop_rules import rules_of
from tests.controllers.cluster.clusters_in_memory import gated, trial
from tests.controllers.cluster.conftest import Stage

WHY = "sweep ended: 0.4 reached 0.5"


def with_two_trials(it: Stage, **rules: object) -> TrialId:
    """Give the stage's sweep rules and a trial that runs beside one that its owner paused; return that one."""
    paused = TrialId(f"{it.sweep}.t001")
    waits = replace(gated(paused), phase=Phase.SUSPENDED, sweep="vae")
    it.world.now = {it.trial: trial(it.trial, sweep="vae"), paused: waits}
    asked = json.dumps({it.world.short(paused): "pause"})
    it.campaign = replace(it.campaign, stops={"vae": rules_of(**rules)}, annotations={labels.ANNOTATION_ASKED: asked})
    return paused


def test_a_sweep_that_has_reached_its_value_is_stopped_whole(stage: Callable[..., Stage]) -> None:
    it = stage()
    paused = with_two_trials(it, value=0.5)
    run = it.start()
    it.step_until(run, it.parents)
    assert it.world.done == []
    it.report(0.9, 0.4)
    it.step_until(run, lambda: len(it.world.done) == 2)
    assert it.world.done == [Stop(it.trial, WHY), Stop(paused, WHY)]


def test_it_stays_ended_under_another_policy_and_after_a_restart(stage: Callable[..., Stage]) -> None:
    it = stage(policy="default")
    with_two_trials(it, value=0.5)
    run = it.start()
    it.step_until(run, it.parents)
    it.report(0.4)
    it.step_until(run, lambda: len(it.world.done) == 2)
    run.keep_state()
    run.close()
    late = TrialId(f"{it.sweep}.t002")
    # Nothing of the trial that reached the value is seen any more.
    it.world.now = {late: replace(gated(late), sweep="vae")}
    it.campaign = replace(it.campaign, annotations={labels.ANNOTATION_SET_POLICY: "least-used"})
    again = it.start()
    it.step_until(again, lambda: len(it.world.done) > 2)
    assert it.world.done[2:] == [Stop(late, WHY)]


def test_rules_of_a_sweep_that_comes_later_in_the_workflow_count(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, it.parents)
    with_two_trials(it, value=0.5)
    it.report(0.4)
    it.step_until(run, lambda: len(it.world.done) == 2)
    assert {one.why for one in it.world.done if isinstance(one, Stop)} == {WHY}
