"""Goals under the production engine in virtual time: who keeps a deadline, who is told that it will be missed."""

from dataclasses import replace

from controllers.core.goals import AskedGoals
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies import Deadline, Default, DQoES, Edf, Tradl
from controllers.record.timeline import EventKind
from controllers.worlds.simulated.workload import CurvePoint
from tests.controllers.worlds.simulated.workloads import scenario, trial

URGENT = trial("urgent", 100.0, cpu=0.2, goals=AskedGoals(deadline_s=150.0))
CALM = trial("calm", 100.0, cpu=0.2, goals=AskedGoals(deadline_s=400.0))
HOPELESS = replace(
    trial("hopeless", 900.0, cpu=0.2, goals=AskedGoals(deadline_s=300.0)),
    reports=tuple(CurvePoint(9.0 * step, 1 / step) for step in range(1, 101)),
)


def met(run: SimulatedRun) -> set[str]:
    return {trial.id for trial in run.result.trials if trial.met_deadline}


def test_the_more_urgent_of_two_trials_is_done_in_time_where_equal_shares_would_miss() -> None:
    both = scenario([URGENT, CALM])
    assert met(simulate(both, Default())) == {"calm"}
    assert met(simulate(both, Deadline())) == {"urgent", "calm"}


def test_a_deadline_out_of_reach_is_told_long_before_it_passes_and_does_not_cost_another() -> None:
    run = simulate(scenario([URGENT, HOPELESS]), Deadline())
    assert met(run) == {"urgent"}
    told = [event for event in run.timeline if event.kind is EventKind.OUTLOOK and event.trial == "hopeless"]
    assert told[0].at < 150.0
    assert (told[0].reason or "").startswith("will miss its deadline by 1")
    assert "at the most it can get (1 cores)" in (told[0].reason or "")


def test_a_trial_leaves_a_crowded_node_for_its_deadline() -> None:
    crowd = [trial(name, 100.0, cpu=0.2, goals=AskedGoals(deadline_s=160.0)) for name in "ab"]
    pinned = scenario(crowd, cores=(1.0, 1.0), pinned={"a": "n1", "b": "n1"})
    run = simulate(pinned, Deadline(move_cost=5.0))
    assert met(run) == {"a", "b"}


def test_earliest_deadlines_start_first() -> None:
    line = [
        trial(name, 100.0, goals=AskedGoals(deadline_s=deadline)) for name, deadline in (("a", 900.0), ("b", 150.0))
    ]
    assert met(simulate(scenario(line), Default())) == {"a"}
    assert met(simulate(scenario(line), Edf())) == {"a", "b"}


def test_a_trial_short_of_its_target_gets_there_sooner_once_the_other_is_past_its_own() -> None:
    # The objective is 1 / part: 0.5 after two tenths of the work.
    easy, hard = (trial(name, 200.0, cpu=0.5, goals=AskedGoals(target=goal)) for name, goal in (("a", 0.5), ("b", 0.1)))
    ends = {
        policy.name: {t.id: t.completed_s for t in simulate(scenario([easy, hard]), policy).result.trials}
        for policy in (Default(), Tradl(interval=5))
    }
    assert ends["tradl"]["b"] < 0.8 * ends["default"]["b"]


def test_the_slower_of_two_paces_gets_the_share_that_the_faster_does_not_need() -> None:
    # Ten steps of 20 lone seconds: with half a core each, 40 s a step.
    slow, fast = (
        trial(name, 200.0, cpu=0.5, goals=AskedGoals(seconds_per_step=goal))
        for name, goal in (("a", 80.0), ("b", 27.0))
    )
    run = simulate(scenario([slow, fast]), DQoES(interval=50))
    ends = {t.id: t.completed_s for t in run.result.trials}
    assert ends["b"] < 330.0
    assert simulate(scenario([slow, fast]), Default()).result.makespan_s == 400.0
