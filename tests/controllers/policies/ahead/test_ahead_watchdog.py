"""Whether ``ahead`` notices that it falls behind the default scheduler, and what it does about it."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.devices import Devices
from controllers.core.model import Node, Phase, Trial, TrialId
from controllers.lab.simulation.experiments import experiment_named
from controllers.lab.simulation.run import simulate
from controllers.policies.ahead.watchdog import CALM_S, Watch, WatchScene, Work, keep_watch
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Scenario
from tests.controllers.policies.policy_fakes import node, snapshot, trial

TWO = (node("n", 1.0), node("m", 1.0))


def scene(at: float, trials: Mapping[str, tuple[str, float, float]], nodes: tuple[Node, ...] = TWO) -> WatchScene:
    """Return what is known at ``at`` seconds of trials, each with its node and the work that it has done and left.

    One without any left has ended.
    """

    def seen(name: str, where: str, left: float) -> Trial:
        if left > 0:
            return trial(name, where, phase=Phase.RUNNING)
        return replace(trial(name, where), phase=Phase.SUCCEEDED, nodes=())

    there = [seen(name, where, left) for name, (where, _, left) in trials.items()]
    work = {one.id: Work(*trials[one.id][1:], 1.0, known=True) for one in there if not one.phase.ended}
    at_node = {name: nodes_of[0] for name in work if (nodes_of := [n.name for n in nodes if n.name == trials[name][0]])}
    return WatchScene(snapshot(at, there, nodes), work, at_node, 1.0, 0.0, 5.0, 0.0)


def looked(*scenes: WatchScene) -> Watch:
    watch = Watch()
    for one in scenes:
        watch = keep_watch(one, watch)
    return watch


def test_the_default_scheduler_would_have_put_each_where_there_was_room_and_shared_evenly() -> None:
    both_on_n = {"a": ("n", 0.0, 100.0), "b": ("n", 0.0, 100.0)}
    watch = looked(scene(0.0, both_on_n), scene(40.0, {"a": ("n", 40.0, 60.0), "b": ("n", 0.0, 100.0)}))
    assert {job.node for job in watch.jobs} == {"n", "m"}
    assert [job.done for job in watch.jobs] == pytest.approx([40.0, 40.0])


def test_to_be_where_the_default_scheduler_would_be_is_not_behind_however_long_it_lasts() -> None:
    def half(at: float) -> WatchScene:
        return scene(at, {"a": ("n", at, 2000.0 - at), "b": ("m", at, 2000.0 - at)})

    assert not any(looked(*map(half, range(0, until, 10))).fallen_back for until in (20, 60, 1000))


def test_work_that_was_not_done_though_nodes_gave_it_is_noticed() -> None:
    # Both had a node of their own to have, and have done a tenth of what these gave.
    late = {"a": ("n", 10.0, 190.0), "b": ("n", 10.0, 190.0)}
    watch = looked(scene(0.0, {"a": ("n", 0.0, 200.0), "b": ("n", 0.0, 200.0)}), scene(100.0, late))
    assert watch.fallen_back
    assert watch.gap.end == pytest.approx(90.0)


def test_what_is_not_known_yet_is_not_judged() -> None:
    late = scene(100.0, {"a": ("n", 10.0, 190.0), "b": ("n", 10.0, 190.0)})
    guessed = replace(late, work={name: replace(work, known=name != "b") for name, work in late.work.items()})
    assert not looked(scene(0.0, {"a": ("n", 0.0, 200.0), "b": ("n", 0.0, 200.0)}), guessed).fallen_back


def test_it_trusts_its_beliefs_again_once_it_has_fallen_no_further_behind_for_a_while() -> None:
    def of_both(at: float, done: float) -> WatchScene:
        return scene(at, {"a": ("n", done, 200.0 - done), "b": ("m", done, 200.0 - done)})

    watches = [looked(of_both(0.0, 0.0), of_both(100.0, 10.0))]
    for at in range(110, 190, 10):
        watches.append(keep_watch(of_both(at, at - 90.0), watches[-1]))
    fallen_back = [watch.at for watch in watches if watch.fallen_back]
    # What it lost before is not held against it afterwards.
    assert (fallen_back[0], fallen_back[-1]) == (100.0, 90.0 + CALM_S)
    assert (watches[0].calm_s, watches[-1].calm_s) == (CALM_S, 2 * CALM_S)


def test_it_stays_fallen_back_as_long_as_it_falls_further_behind() -> None:
    watch = looked(
        scene(0.0, {"a": ("n", 0.0, 900.0), "b": ("m", 0.0, 900.0)}),
        *(scene(at, {"a": ("n", 1.0, 899.0), "b": ("m", 1.0, 899.0)}) for at in (100.0, 170.0, 240.0, 310.0, 380.0)),
    )
    assert watch.fallen_back_at == 380.0


def test_a_trial_that_takes_longer_than_was_guessed_would_not_have_ended_either() -> None:
    watch = looked(
        scene(0.0, {"a": ("n", 0.0, 10.0)}),
        scene(20.0, {"a": ("n", 15.0, 500.0)}),
        scene(30.0, {"a": ("n", 25.0, 490.0)}),
    )
    assert [job.ended_s for job in watch.jobs] == [None]
    assert not watch.fallen_back


def test_of_trials_that_ended_here_and_there_only_the_sum_is_kept() -> None:
    watch = looked(
        scene(0.0, {"a": ("n", 0.0, 10.0), "b": ("m", 0.0, 900.0)}),
        scene(10.0, {"a": ("n", 5.0, 5.0), "b": ("m", 10.0, 890.0)}),
        scene(20.0, {"a": ("n", 10.0, 0.0), "b": ("m", 20.0, 880.0)}),
    )
    assert [job.trial for job in watch.jobs] == [TrialId("b")]
    assert watch.over == 1
    assert watch.later_s == pytest.approx(10.0)


@pytest.mark.parametrize(
    "one", [trial("a", "n", max_workers=3), trial("a", "n", devices=Devices.of({"gpu": 1}))], ids=["gang", "devices"]
)
def test_gangs_and_trials_with_devices_are_not_watched(one: Trial) -> None:
    other = replace(scene(100.0, {"a": ("n", 10.0, 190.0)}), snapshot=snapshot(100.0, [one], TWO))
    assert keep_watch(other, Watch()) == Watch(100.0)


@given(
    st.lists(st.tuples(st.floats(0, 1e12), st.floats(0, 1e12), st.floats(1e-3, 64)), min_size=1, max_size=6),
    st.lists(st.floats(1e-3, 64), min_size=1, max_size=4),
    st.floats(0.2, 1.2),
)
def test_whatever_is_believed_of_the_work_the_watch_stays_finite(
    works: list[tuple[float, float, float]], cores: list[float], power: float
) -> None:
    nodes = tuple(node(f"n{place}", each) for place, each in enumerate(cores))
    watch = Watch()
    for look in range(3):
        there = [trial(f"t{number}", "n0", phase=Phase.RUNNING) for number in range(len(works))]
        each = zip(there, works, strict=True)
        work = {one.id: Work(done * look, left, most, known=True) for one, (done, left, most) in each}
        at_node = {one.id: nodes[0].name for one in there}
        watch = keep_watch(WatchScene(snapshot(60.0 * look, there, nodes), work, at_node, power, 1.0, 5.0, 0.0), watch)
    assert abs(watch.gap.end) < 1e20
    assert abs(watch.gap.mean) < 1e20
    assert math.isfinite(watch.later_s)


def test_work_that_takes_less_time_than_the_clock_can_tell_ends() -> None:
    late = {"a": ("n", 0.0, 1e-12), "b": ("m", 0.0, 2e-12)}
    assert looked(scene(1e9, late), scene(1e9 + 10, late)).jobs[0].ended_s is not None


@pytest.mark.parametrize("name", ["X3-blind", "X4-blind"])
def test_where_nothing_tells_of_others_it_notices_that_its_beliefs_are_wrong(name: str) -> None:
    ratios = []
    for seed in (0, 1, 3):
        setup = experiment_named(name)
        assert setup is not None
        workload = setup.workload(seed)
        runs = [simulate(Scenario(workload, setup.costs, seed=seed), parse_policy(one)) for one in ("default", "ahead")]
        ends = [max(one.completed_s for one in run.result.trials) for run in runs]
        ratios.append(ends[1] / ends[0])
    # Without it, the mean of these is above 1 on one of the two, and the worst above 1.6.
    assert sum(ratios) / len(ratios) < 0.9
