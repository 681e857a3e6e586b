"""Forecasts of trials that hold devices: by the clock, and by where they are and will be."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.forecast import EndRange
from controllers.core.model import Node, NodeName, Progress, Snapshot, Trial
from controllers.forecast.jobs import known_sweep
from controllers.forecast.ranges import PolicyTraits, forecast
from controllers.policies import Ahead, Default
from controllers.policies.kit.work_left import SweepMeasurements, measure_sweep
from tests.controllers.forecast.sweeps import N1, N2, trial

GPU = Devices.of({"nvidia.com/gpu": 1})
STEPS = 100
UNTIL = 30


def node(name: NodeName, *, model: str = "", devices: int = 4, replicas: int = 1) -> Node:
    shared = GPU * replicas if replicas > 1 else NO_DEVICES
    return Node(name, 16.0, devices=GPU * devices, device_model=model, replicas=shared)


def holding(name: str, where: NodeName | None) -> Trial:
    return replace(trial(name, where, cpu=2.0), devices=GPU, parameters=(("width", float(ord(name))),))


def seen(
    step_s: Mapping[Trial, float], waiting: Trial | None, nodes: tuple[Node, ...], cores: float
) -> tuple[Snapshot, SweepMeasurements]:
    """Return a look at trials whose steps take so many seconds, in which each uses so many ``cores``."""
    known, snapshot = SweepMeasurements(), Snapshot(0.0, (), nodes)
    for now in range(UNTIL + 1):
        trials = []
        for one, seconds in step_s.items():
            done = int(now / seconds)
            report = Progress(1.0, 0.5, 0.5, done, done * seconds, cores * done * seconds, STEPS)
            trials.append(replace(one, progress=report) if done else one)
        snapshot = Snapshot(float(now), (*trials, *([waiting] if waiting else [])), nodes)
        known = measure_sweep(snapshot, known)
    return snapshot, known


def told(end: EndRange | None) -> float:
    assert end is not None
    return end.likely


@pytest.mark.parametrize("cores", [0.3, 1.0, 2.0])
def test_a_trial_is_as_long_as_its_steps_take_however_many_cores_it_uses(cores: float) -> None:
    one = holding("a", N1)
    snapshot, known = seen({one: 2.0}, None, (node(N1), node(N2)), cores)
    assert told(forecast(snapshot, known, (), PolicyTraits.by(Default())).end) == pytest.approx(200.0, rel=0.05)


def test_a_trial_that_waits_is_as_long_as_on_the_device_that_it_will_get() -> None:
    # Alike trials: on the slow devices a step takes 2.5 times as long. Those of the fast node end first.
    running = {holding(name, N1): 1.0 for name in "acdf"} | {holding(name, N2): 2.5 for name in "begh"}
    nodes = (node(N1, model="fast"), node(N2, model="slow"))
    waiting = holding("z", None)
    snapshot, known = seen(running, waiting, nodes, 2.0)
    found = forecast(snapshot, known, (), PolicyTraits.by(Ahead()))
    ends = {one.id: told(found.trials[one.id]) for one in (*running, waiting)}
    assert ends[holding("a", N1).id] == pytest.approx(100.0, rel=0.1)
    assert ends[holding("b", N2).id] == pytest.approx(170.0, rel=0.1), "it moves to a fast one once that is free"
    assert ends[waiting.id] == pytest.approx(200.0, rel=0.15), "it goes where a trial took 100 s, and not 175"


def test_what_a_trial_did_beside_others_on_a_device_says_how_long_it_takes_alone_there() -> None:
    # Two on one device, each with a use for all of its time: of 200 s each, the shorter has half left.
    shared = (node(N1, devices=4, replicas=4, model="fast"), node(N2, devices=0))
    snapshot, known = seen({holding("a", N1): 2.0, holding("b", N1): 2.0}, None, shared, 1.0)
    jobs = known_sweep(snapshot, known, (), 0).jobs
    assert [job.step for job in jobs] == pytest.approx([1.0, 1.0]), "alone, a step would take a second"
    assert told(forecast(snapshot, known, (), PolicyTraits.by(Default())).end) == pytest.approx(200.0, rel=0.1)


def test_where_trials_take_turns_only_as_many_count_as_starting_as_are_worth_sharing() -> None:
    shared = (node(N1, devices=4, replicas=4, model="fast"),)
    snapshot, known = seen({holding("a", N1): 1.0}, holding("z", None), shared, 1.0)
    free = [known_sweep(snapshot, known, (), 0, takes_turns=turns).rooms[0].devices for turns in (False, True)]
    assert free == [GPU * 3, NO_DEVICES]


def test_a_trial_that_waits_for_a_device_is_foreseen_on_as_many_cores_as_others_use_beside_theirs() -> None:
    running = {holding(name, N1): ord(name) / 100 for name in "acegi"}
    snapshot, known = seen(running, holding("k", None), (node(N1, devices=5), node(N2, devices=1)), 1.0)
    waits = next(job for job in known_sweep(snapshot, known, (), 0).jobs if job.job.node is None)
    assert waits.most == pytest.approx(1.0, rel=0.1), "and not on all 16 of a node"
    assert waits.left == pytest.approx(107.0, rel=0.1)
