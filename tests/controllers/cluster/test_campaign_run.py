"""One campaign from its begin to its end, with a real MLflow store and a cluster in memory."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from mlflow.entities import Metric

from controllers.core import labels
from controllers.core.actions import Place, Suspend
from controllers.core.model import Phase, Trial, TrialId
from controllers.core.parameters import bound_parameters
from controllers.record.timeline import EventKind
from controllers.search import Dimension, NumberRange, SearchSpec
from hera_specon.records.tracked import policy_of
from mlflow_hooks import contract
from tests.controllers.cluster.clusters_in_memory import TWO, MemoryWorld, gated, trial
from tests.controllers.cluster.conftest import Stage
from tests.controllers.search.test_optuna_search import X


def test_a_sweep_gets_a_parent_run_a_timeline_and_a_result(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, it.parents)
    child = it.report(0.9, 0.5)
    it.step_until(run, lambda: "mlflow.parentRunId" in it.tags(child))
    it.step_until(run, lambda: _is_told(it, EventKind.REPORT))
    it.finish(run)
    (parent,) = it.parents()
    assert it.tags(child)["mlflow.parentRunId"] == parent.info.run_id
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["specon.makespan_s"] == 60.0
    events = it.timeline()
    assert {event["trial"] for event in events} == {it.world.short(it.trial)}
    assert {event["kind"] for event in events} >= {EventKind.PHASE.value, EventKind.REPORT.value}
    result = json.loads(it.artifact("result.json"))
    assert (result["policy"], result["trials"][0]["final_metric"]) == ("default", 0.5)


def test_a_workflow_that_failed_has_a_parent_run_that_failed(stage: Callable[..., Stage]) -> None:
    it = stage()
    it.world.failed = True
    it.finish(it.start())
    assert [parent.info.status for parent in it.parents()] == ["FAILED"]


def test_a_sweep_whose_record_is_complete_is_left_alone_after_a_restart(stage: Callable[..., Stage]) -> None:
    it = stage()
    it.finish(it.start())
    (before,), told = it.parents(), it.timeline()
    again = it.start()
    it.step_until(again, lambda: again.done)
    (after,) = it.parents()
    assert after.info.end_time == before.info.end_time
    assert it.timeline() == told
    assert it.world.advanced == 1


def test_a_sweep_that_ended_while_no_controller_ran_is_recorded_by_the_next(stage: Callable[..., Stage]) -> None:
    it = stage()
    first = it.start()
    it.step_until(first, it.parents)
    first.close()
    it.finish(it.start())
    assert [parent.info.status for parent in it.parents()] == ["FINISHED"]


def test_a_controller_that_starts_anew_continues_in_the_same_parent_run(stage: Callable[..., Stage]) -> None:
    it = stage(policy="specon")
    for _ in range(2):
        run = it.start()
        it.step_until(run, it.parents)
        run.close()
    assert len(it.parents()) == 1
    assert json.loads(it.cluster.stores[it.uid].text or "{}")["policy"] == "specon"


def test_the_clock_of_a_sweep_begins_with_its_workflow_for_every_controller_that_takes_it_up(
    stage: Callable[..., Stage],
) -> None:
    it = stage()
    for age in (3600.0, 10_000.0):
        it.epoch = partial(float, it.campaign.created_epoch_s + age)
        run = it.start()
        it.step_until(run, partial(_is_past, it.world, age))
        assert it.world.clock < age + 1800
        run.close()


def test_a_sweep_is_no_earlier_for_a_controller_whose_clock_is_behind(stage: Callable[..., Stage]) -> None:
    it = stage()
    it.epoch = partial(float, it.campaign.created_epoch_s + 4000.0)
    run = it.start()
    it.step_until(run, it.parents)
    it.report(0.9, 0.5)
    it.step_until(run, lambda: _is_told(it, EventKind.REPORT))
    run.close()
    it.epoch = partial(float, it.campaign.created_epoch_s - 3600.0)
    again = it.start()
    it.step_until(again, lambda: it.world.clock >= 4000.0)
    again.close()


def test_a_sweep_that_began_in_the_future_of_its_controller_begins_now(stage: Callable[..., Stage]) -> None:
    it = stage()
    it.epoch = partial(float, it.campaign.created_epoch_s - 3600.0)
    run = it.start()
    it.step_until(run, it.parents)
    assert 0 <= it.world.clock < 3000
    run.close()


def _is_past(world: MemoryWorld, clock: float) -> bool:
    return world.clock >= clock


def test_a_deleted_workflow_ends_its_parent_run_as_killed(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, it.parents)
    run.abandon()
    run.close()
    assert [parent.info.status for parent in it.parents()] == ["KILLED"]


def test_a_policy_sees_what_is_in_use_of_each_node_by_the_reports_of_trials(stage: Callable[..., Stage]) -> None:
    it = stage(policy="least-used")
    run = it.start()
    it.step_until(run, it.parents)
    child = it.report(0.9, 0.5)
    waiting = [TrialId(f"{it.sweep}.t{number:03d}") for number in range(1, 7)]
    # The usage is what lies between two reports, so the first must have been read before there is a second.
    it.step_until(run, lambda: _is_told(it, EventKind.REPORT))
    later = it.client.get_metric_history(child, "loss")[0].timestamp + 1000
    it.client.log_batch(child, [Metric("loss", 0.4, later, 2), Metric(contract.METRIC_CPU_SECONDS, 6.0, later, 2)])
    it.step_until(run, lambda: _is_told(it, EventKind.USAGE))
    it.world.now |= {name: gated(name) for name in waiting}
    it.step_until(run, lambda: len(it.world.done) == len(waiting))
    assert it.world.done == [Place(name, (TWO,)) for name in waiting]


def _is_told(it: Stage, kind: EventKind) -> bool:
    return any(event["kind"] == kind.value for event in it.timeline())


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


def test_a_trial_that_never_logs_its_objective_is_a_warning_and_stops_nothing(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    it = stage()
    it.world.now = {it.trial: trial(it.trial, phase=Phase.SUCCEEDED)}
    it.world.objectives = lambda: {it.trial: "accuracy"}  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    it.report(0.9)
    it.step_until(run, lambda: run.without_objective == 1)
    run.step(it.campaign)
    told = [record.getMessage() for record in caplog.records if "accuracy" in record.getMessage()]
    assert len(told) == 1


@pytest.mark.parametrize("sweep", ["x' OR 'a' = 'a", "", "a/b", "x" * 300])
def test_a_sweep_id_that_could_be_more_than_a_name_never_gets_to_mlflow(
    stage: Callable[..., Stage], sweep: str
) -> None:
    it = stage()
    it.campaign = replace(it.campaign, sweeps={sweep: "controller-tests", it.sweep: "controller-tests"})
    run = it.start()
    it.step_until(run, it.parents)
    run.close()
    assert [parent.data.tags[contract.TAG_SWEEP_ID] for parent in it.parents()] == [it.sweep]


def test_a_tick_is_counted_and_timed(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, lambda: it.instruments.registry.get_sample_value("specon_ticks_total"))
    assert run.phases == {Phase.RUNNING: 1}
    assert it.instruments.registry.get_sample_value("specon_tick_duration_seconds_count") == 1


def test_what_the_engine_remembers_is_kept_when_it_hands_over(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, lambda: True)
    run.keep_state()
    assert it.cluster.stores[it.uid].flushed == 1


def test_losing_the_lease_between_decision_and_act_stops_the_act(stage: Callable[..., Stage]) -> None:
    it = stage()
    it.leading = False
    it.world.now = {it.trial: gated(it.trial)}
    run = it.start()
    it.step_until(run, lambda: it.instruments.registry.get_sample_value("specon_ticks_total"))
    assert it.world.done == []
    assert it.world.now[it.trial].gated


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


def test_a_trials_run_is_made_under_its_sweep_before_its_pod_starts(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    # Asked at once, when even the run of the sweep may not be there yet.
    made = it.cluster.run_of[it.uid](it.trial, {"lr": 0.1}, may_make=True)
    (parent,) = it.parents()
    tags = it.tags(made)
    assert tags["mlflow.parentRunId"] == parent.info.run_id
    assert (tags[contract.TAG_TRIAL_ID], tags[contract.TAG_SWEEP_ID]) == (it.trial, it.sweep)
    # A script may log its own under the same names, in another form.
    assert it.client.get_run(made).data.params == {}
    assert it.cluster.run_of[it.uid](it.trial, {"lr": 0.1}, may_make=True) == made
    # What a script logs there by MLflow alone is the trial's progress.
    it.client.log_metric(made, "loss", 0.25, step=1)
    it.step_until(run, lambda: _is_told(it, EventKind.REPORT))
    run.close()
    again = it.start()
    it.step_until(again, it.parents)
    assert it.cluster.run_of[it.uid](it.trial, {}, may_make=True) == made


def test_a_run_that_nobody_else_ended_ends_with_its_sweep_and_gets_parameters(
    stage: Callable[..., Stage],
) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    made = it.cluster.run_of[it.uid](it.trial, {"lr": 0.1, "width": 1}, may_make=True)
    it.client.log_param(made, "width", "1.0")
    it.step_until(run, it.parents)
    it.finish(run)
    assert it.client.get_run(made).info.status == "FINISHED"
    assert it.client.get_run(made).data.params == {"lr": "0.1", "width": "1.0"}


@pytest.mark.parametrize("name", ["x' OR 'a' = 'a", "a b", "x" * 300])
def test_no_run_is_made_for_an_id_that_could_be_more_than_a_name(stage: Callable[..., Stage], name: str) -> None:
    it = stage()
    it.start()
    assert it.cluster.run_of[it.uid](f"{it.sweep}.{name}", {}, may_make=True) == ""


def test_runs_that_a_script_makes_itself_are_followed_nested_and_one_for_the_trial_in_the_end(
    stage: Callable[..., Stage],
) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    first = it.logs_by_itself(0.9)
    it.step_until(run, lambda: "mlflow.parentRunId" in it.tags(first))
    again = it.logs_by_itself(0.5, attempt="pod-2")
    it.step_until(run, lambda: it.tags(again).get("specon.category") == it.tags(first).get("specon.category"))
    assert it.cluster.run_of[it.uid](it.trial, {}, may_make=False) == again
    it.step_until(run, lambda: _is_told(it, EventKind.REPORT))
    it.finish(run)
    (parent,) = it.parents()
    assert it.tags(again)["mlflow.parentRunId"] == parent.info.run_id
    assert it.tags(first)["mlflow.parentRunId"] == again
    assert contract.TAG_TRIAL_ID not in it.tags(first)
    assert {it.client.get_run(one).info.status for one in (first, again)} == {"FINISHED"}
    assert it.client.get_run(again).data.params == {"lr": "0.1"}
    assert json.loads(it.artifact("result.json"))["trials"][0]["final_metric"] == 0.5


def test_a_script_that_names_its_own_experiment_is_followed_there_and_its_reader_is_told_once(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    elsewhere = f"of the script {it.uid}"
    own = it.logs_by_itself(0.25, elsewhere)
    it.step_until(run, lambda: "mlflow.parentRunId" in it.tags(own))
    it.step_until(run, lambda: _is_told(it, EventKind.REPORT))
    # Its attempts could not use a run of another experiment than they name.
    assert it.cluster.run_of[it.uid](it.trial, {}, may_make=False) == ""
    it.finish(run)
    told = [record.getMessage() for record in caplog.records if elsewhere in record.getMessage()]
    assert len(told) == 1
    assert it.client.get_run(own).info.status == "FINISHED"


def test_a_trial_that_logged_nowhere_has_a_run_in_the_end(stage: Callable[..., Stage]) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    it.finish(run)
    (parent,) = it.parents()
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{it.trial}'"
    (made,) = it.client.search_runs([parent.info.experiment_id], wanted)
    assert (made.info.status, made.data.params) == ("FINISHED", {"lr": "0.1"})


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


def _searched(it: Stage, number: int, spec: SearchSpec) -> Trial:
    name = f"{it.sweep}.t{number:03d}"
    return replace(gated(name), search=spec.written(), sweep=it.sweep)


def test_a_trial_of_a_search_starts_once_the_process_that_searches_has_answered(stage: Callable[..., Stage]) -> None:
    it = stage()
    waiting = _searched(it, 1, SearchSpec(sampler="tpe", space=(X,)))
    it.world.now = {waiting.id: waiting}
    it.step_until(it.start(), lambda: it.world.done)
    (placed,) = it.world.done
    assert isinstance(placed, Place)
    assert [name for name, _ in placed.point] == ["x"]


def test_a_search_that_would_compute_too_much_starts_no_trial_and_the_sweep_beside_it_does(
    stage: Callable[..., Stage],
) -> None:
    space = tuple(Dimension(name=f"x{number}", domain=NumberRange(low=0, high=1)) for number in range(32))
    dear = SearchSpec(sampler="tpe", settings={"n_ei_candidates": 10_000}, space=space)
    attacker, victim = stage(), stage()
    point = {one.name: 0.5 for one in space}
    done = [_searched(attacker, number, dear) for number in range(400)]
    trials = [replace(one, phase=Phase.SUCCEEDED, gated=False, parameters=bound_parameters(point)) for one in done]
    trials.append(_searched(attacker, 400, dear))
    attacker.world.now = {one.id: one for one in trials}
    waiting = _searched(victim, 1, SearchSpec(sampler="tpe", space=(X,)))
    victim.world.now = {waiting.id: waiting}
    hostile, harmless = attacker.start(), victim.start()

    def both() -> object:
        hostile.step(attacker.campaign)
        return victim.world.done

    victim.step_until(harmless, both)
    refusals = attacker.instruments.registry.get_sample_value(
        "specon_actions_total", {"kind": "place", "outcome": "refused"}
    )
    assert refusals
    assert not attacker.world.done
