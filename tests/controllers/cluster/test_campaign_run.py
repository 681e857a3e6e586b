"""One campaign from its begin to its end: its record, its clock and its lease, with a real MLflow store."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from controllers.core.model import Phase
from controllers.record.timeline import EventKind
from mlflow_hooks import contract
from tests.controllers.cluster.clusters_in_memory import MemoryWorld, gated
from tests.controllers.cluster.conftest import Stage


def test_a_sweep_gets_a_parent_run_a_timeline_and_a_result(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, it.parents)
    child = it.report(0.9, 0.5)
    it.step_until(run, lambda: "mlflow.parentRunId" in it.tags(child))
    it.step_until(run, lambda: it.is_told(EventKind.REPORT))
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


def _is_past(world: MemoryWorld, clock: float) -> bool:
    return world.clock >= clock


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
    it.step_until(run, lambda: it.is_told(EventKind.REPORT))
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


def test_a_deleted_workflow_ends_its_parent_run_as_killed(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    it.step_until(run, it.parents)
    run.abandon()
    run.close()
    assert [parent.info.status for parent in it.parents()] == ["KILLED"]


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
