"""What a campaign does to its trials: by its policy, by what its workflow says, and by what its owner asks."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from mlflow.entities import Metric

from controllers.core import labels
from controllers.core.actions import Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import TrialId
from controllers.record.timeline import EventKind
from hera_specon.records.tracked import policy_of
from mlflow_hooks import contract
from tests.controllers.cluster.clusters_in_memory import TWO, gated
from tests.controllers.cluster.conftest import Stage


def test_a_policy_sees_what_is_in_use_of_each_node_by_the_reports_of_trials(stage: Callable[..., Stage]) -> None:
    it = stage(policy="least-used")
    run = it.start()
    it.step_until(run, it.parents)
    child = it.report(0.9, 0.5)
    waiting = [TrialId(f"{it.sweep}.t{number:03d}") for number in range(1, 7)]
    # The usage is what lies between two reports, so the first must have been read before there is a second.
    it.step_until(run, lambda: it.is_told(EventKind.REPORT))
    later = it.client.get_metric_history(child, "loss")[0].timestamp + 1000
    it.client.log_batch(child, [Metric("loss", 0.4, later, 2), Metric(contract.METRIC_CPU_SECONDS, 6.0, later, 2)])
    it.step_until(run, lambda: it.is_told(EventKind.USAGE))
    it.world.now |= {name: gated(name) for name in waiting}
    it.step_until(run, lambda: len(it.world.done) == len(waiting))
    assert it.world.done == [Place(name, (TWO,)) for name in waiting]


def test_a_gated_first_attempt_starts_where_the_workflow_says(stage: Callable[..., Stage]) -> None:
    it = stage(annotations={labels.ANNOTATION_FIRST_NODES: json.dumps({"vae.t000": "two"})})
    it.world.now = {it.trial: gated(it.trial)}
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    it.step_until(it.start(), lambda: it.world.done)
    assert it.world.done == [Place(it.trial, (TWO,))]


@pytest.mark.parametrize("written", ["", "no JSON", "[1]", '{"vae.t000": 7}'])
def test_a_gated_first_attempt_starts_somewhere_when_nobody_says_where(
    stage: Callable[..., Stage], written: str
) -> None:
    it = stage(annotations={labels.ANNOTATION_FIRST_NODES: written})
    it.world.now = {it.trial: gated(it.trial)}
    it.step_until(it.start(), lambda: it.world.done)
    assert it.world.done == [Place(it.trial)]


@pytest.mark.parametrize("policy", ["nonsense", "specon:alpha=9"])
def test_a_policy_that_cannot_be_loaded_leaves_trials_alone_but_opens_gates(
    stage: Callable[..., Stage], policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    it = stage(policy=policy)
    it.world.now = {it.trial: gated(it.trial)}
    it.step_until(it.start(), lambda: it.world.done)
    assert it.world.done == [Place(it.trial)]
    assert any("left alone" in record.getMessage() for record in caplog.records)


def test_a_controller_that_recommends_touches_nothing_and_says_so_in_mlflow(stage: Callable[..., Stage]) -> None:
    it = stage(recommend=True, policy="specon")
    it.world.now = {it.trial: gated(it.trial)}
    run = it.start()
    it.step_until(run, it.parents)
    child = it.report(0.9)
    it.step_until(run, lambda: "specon.recommended.action" in it.tags(child))
    tags = it.tags(child)
    assert it.world.done == []
    assert it.world.advanced == 0
    assert tags["specon.recommended.action"] == f"start of {it.trial} where the scheduler wants it"
    assert "specon.recommended.reason" in tags
    ours = {name for name in tags if name.startswith("specon.")}
    assert ours - {contract.TAG_SWEEP_ID, contract.TAG_TRIAL_ID} == {
        name for name in ours if name.startswith("specon.recommended.")
    }
    assert [parent.data.tags["specon.policy"] for parent in it.parents()] == ["default"]


def test_what_the_owner_of_a_workflow_asks_of_a_trial_is_done_and_undone(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, it.parents)
    asked = json.dumps({it.world.short(it.trial): "pause", "vae.gone": "stop"})
    it.campaign = replace(it.campaign, annotations={labels.ANNOTATION_ASKED: asked})
    it.step_until(run, lambda: it.world.done)
    assert it.world.done == [Suspend(it.trial)]
    it.campaign = replace(it.campaign, annotations={})
    it.step_until(run, lambda: len(it.world.done) > 1)
    assert it.world.done == [Suspend(it.trial), Place(it.trial)]
    it.finish(run)


def test_the_run_of_a_sweep_names_its_policy_with_the_parameters(stage: Callable[..., Stage]) -> None:
    it = stage(policy="least-used:seed=3")
    run = it.start()
    it.step_until(run, it.parents)
    (parent,) = it.parents()
    assert policy_of(parent) == "least-used:seed=3"
    assert parent.data.tags["specon.policy"] == "least-used"  # what older versions look for


def test_its_owner_gives_a_sweep_another_policy_while_it_runs(stage: Callable[..., Stage]) -> None:
    it = stage(policy="default")
    run = it.start()
    it.step_until(run, it.parents)
    it.campaign = replace(it.campaign, annotations={labels.ANNOTATION_SET_POLICY: "least-used"})
    it.world.now |= {TrialId(f"{it.sweep}.t001"): gated(f"{it.sweep}.t001")}
    it.step_until(run, lambda: it.world.done)
    # The default policy would leave the choice to the scheduler.
    assert [isinstance(one, Place) and one.node for one in it.world.done] != [None]
    run.keep_state()
    assert json.loads(it.cluster.stores[it.uid].text or "{}")["policy"] == "least-used"
    assert [parent.data.tags["specon.policy"] for parent in it.parents()] == ["default"]
    run.close()
    it.start().keep_state()
    assert json.loads(it.cluster.stores[it.uid].text or "{}")["policy"] == "least-used"


@pytest.mark.parametrize("written", ["nonsense", "specon:alpha=9", "ahead+" * 5000])
def test_a_policy_that_cannot_be_is_told_once_and_changes_nothing(
    stage: Callable[..., Stage], written: str, caplog: pytest.LogCaptureFixture
) -> None:
    it = stage(policy="default", annotations={labels.ANNOTATION_SET_POLICY: written})
    run = it.start()
    it.step_until(run, it.parents)
    run.step(it.campaign)
    assert sum("the policy stays default" in record.getMessage() for record in caplog.records) == 1


def test_a_pruner_that_somebody_writes_onto_a_sweep_of_several_objectives_is_refused_by_name(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    it = stage(policy="default", annotations={labels.ANNOTATION_SET_POLICY: "optuna"})
    it.campaign = replace(it.campaign, several=True)
    it.world.can |= {Stop}
    it.step_until(it.start(), it.parents)
    assert "the policy stays default: policy 'optuna' takes no sweep of several objectives" in caplog.text


SHARES_ONLY, ALL = "flowcon", frozenset({Resize, Migrate, Place})


def test_where_no_share_can_be_changed_a_policy_of_shares_is_refused_by_name(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    it = stage(policy=SHARES_ONLY, why_no_shares="no pods/resize here: upgrade")
    it.world.can = frozenset({Migrate, Place})
    it.start()
    assert "policy 'flowcon' needs Resize" in caplog.text
    assert "no pods/resize here: upgrade" in caplog.text


def test_where_no_share_can_be_changed_a_policy_that_does_more_runs_without_and_says_so(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    it = stage(policy="procon+flowcon:interval=1", why_no_shares="no pods/resize here: upgrade")
    it.world.can = frozenset({Migrate, Place})
    run = it.start()
    it.world.now |= {TrialId(f"{it.sweep}.t001"): gated(f"{it.sweep}.t001")}
    it.step_until(run, lambda: it.world.done)
    assert {type(one) for one in it.world.done} == {Place}
    assert "runs without changing shares: no pods/resize here: upgrade" in caplog.text


def test_a_policy_that_was_refused_takes_over_once_the_cluster_was_upgraded(stage: Callable[..., Stage]) -> None:
    it = stage(policy=SHARES_ONLY, why_no_shares="no pods/resize here: upgrade")
    it.world.can = frozenset({Migrate, Place})
    run = it.start()
    it.step_until(run, it.parents)
    run.keep_state()
    assert json.loads(it.cluster.stores[it.uid].text or "{}")["policy"] == "default"
    it.world.can = ALL
    it.step_until(run, lambda: True)
    run.keep_state()
    it.step_until(run, lambda: json.loads(it.cluster.stores[it.uid].text or "{}")["policy"] == SHARES_ONLY)
