"""Trials that wait for a GPU, a disk or an environment are as long as their steps take, whatever CPU they use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from controllers.core.devices import Devices
from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import Node, NodeName, Phase, Progress, Snapshot, Trial
from controllers.core.ports import ComingTrial
from controllers.forecast.ranges import PolicyTraits, forecast
from controllers.policies import Ahead, Default
from controllers.policies.kit.work_left import SweepMeasurements, estimate_work, measure_sweep
from tests.controllers.forecast.sweeps import N1, N2, trial

DEFAULT, AHEAD = PolicyTraits.by(Default()), PolicyTraits.by(Ahead())
STEPS = 45
SLEEP_S = 1.0


@dataclass
class Sweep:
    """A sweep of trials whose steps wait ``wait_s`` and compute ``cost`` core seconds on ``cores``; a look each second.

    CPU seconds come in hundredths, as the system counts them.
    """

    wait_s: float
    cost: float
    cores: float = 0.2
    start_s: float = 2.0
    imports: float = 0.35
    steps: int = STEPS

    @property
    def step_s(self) -> float:
        return self.wait_s + self.cost / self.cores

    @property
    def trial_s(self) -> float:
        return self.start_s + self.steps * self.step_s

    def at(self, one: Trial, now: float, began: float = 0.0) -> Trial:
        done = int((now - began - self.start_s) / self.step_s + 1e-9)
        if done < 1:
            return one
        done, over = min(done, self.steps), done >= self.steps
        at = began + self.start_s + done * self.step_s
        cpu = int(100 * (self.imports + done * self.cost)) / 100
        one = replace(one, progress=Progress(1.0, 0.5, 0.5, done - 1, at, cpu, self.steps))
        return replace(one, phase=Phase.SUCCEEDED, nodes=()) if over else one


def followed(
    sweep: Sweep, until: float, trials: Sequence[Trial], nodes: Sequence[float] = (0.4, 0.4)
) -> tuple[Snapshot, SweepMeasurements]:
    known = SweepMeasurements()
    names = [NodeName(f"n{number + 1}") for number in range(len(nodes))]
    for now in range(int(until) + 1):
        each = tuple(sweep.at(one, float(now)) if one.nodes else one for one in trials)
        snapshot = Snapshot(float(now), each, tuple(map(Node, names, nodes)))
        known = measure_sweep(snapshot, known)
    return snapshot, known


def told(sweep: Sweep, until: float, trials: Sequence[Trial], steering: PolicyTraits = DEFAULT) -> Forecast:
    snapshot, known = followed(sweep, until, trials)
    return forecast(snapshot, known, (), steering)


def end_of(found: Forecast) -> EndRange:
    assert found.end is not None
    return found.end


PAIR = (trial("a", N1, cpu=0.2), trial("b", N2, cpu=0.2))


@pytest.mark.parametrize("steering", [DEFAULT, AHEAD], ids=["default", "ahead"])
@pytest.mark.parametrize(
    ("cost", "at"),
    [(0.0004, 20.0), (0.0004, 44.0), *((cost, at) for cost in (0.004, 0.02) for at in (8.0, 15.0, 30.0, 44.0))],
)
def test_trials_that_sleep_end_when_their_steps_are_through(cost: float, at: float, steering: PolicyTraits) -> None:
    sweep = Sweep(SLEEP_S, cost, cores=0.4)
    end = end_of(told(sweep, at, PAIR, steering))
    assert end.holds(sweep.trial_s)
    assert end.likely == pytest.approx(sweep.trial_s, abs=0.15 * (sweep.trial_s - at) + 1)
    assert end.high - end.low < sweep.trial_s


@pytest.mark.parametrize(("wait_s", "cost"), [(2.0, 0.2), (1.0, 0.2), (0.5, 0.1), (3.0, 1.0)])
@pytest.mark.parametrize("part", [0.3, 0.5, 0.8])
def test_trials_that_wait_and_compute_end_within_their_range(wait_s: float, cost: float, part: float) -> None:
    sweep = Sweep(wait_s, cost, cores=0.4)
    end = end_of(told(sweep, part * sweep.trial_s, PAIR))
    assert end.holds(sweep.trial_s)


def test_trials_that_share_a_node_and_wait_do_not_slow_each_other_down() -> None:
    sweep = Sweep(SLEEP_S, 0.004, cores=0.4)
    crowd = [trial(f"t{number}", N1, cpu=0.05) for number in range(8)]
    assert end_of(told(sweep, 20.0, crowd)).holds(sweep.trial_s)


def test_trials_that_wait_for_a_place_are_as_long_as_those_that_run() -> None:
    sweep = Sweep(SLEEP_S, 0.004, cores=0.4)
    queue = [*(trial(name, N1, cpu=0.2) for name in "ab"), *(trial(name, None, cpu=0.2) for name in "cdef")]
    snapshot, known = followed(sweep, 20.0, queue, nodes=(0.4,))
    end = end_of(forecast(snapshot, known, (), DEFAULT))
    assert end.holds(3 * sweep.trial_s)
    assert end.likely == pytest.approx(3 * sweep.trial_s, rel=0.2)


def test_trials_to_come_are_like_those_that_ended() -> None:
    sweep = Sweep(SLEEP_S, 0.004, cores=0.4)
    snapshot, known = followed(sweep, 60.0, PAIR)
    assert all(one.phase.ended for one in snapshot.trials)
    coming = [ComingTrial(trial("c").id, 60.0, 0.2)]
    end = end_of(forecast(snapshot, known, coming, DEFAULT))
    assert end.holds(60.0 + sweep.trial_s)
    assert end.likely == pytest.approx(60.0 + sweep.trial_s, rel=0.1)


def test_trials_that_compute_are_foreseen_by_what_they_compute() -> None:
    sweep = Sweep(0.0, 0.4, cores=0.4)
    snapshot, known = followed(sweep, 20.0, PAIR)
    assert all(memo.busy is None or memo.busy >= 0.9 for memo in known.trials.values())
    assert end_of(forecast(snapshot, known, (), DEFAULT)).holds(sweep.trial_s)


@pytest.mark.parametrize("cost", [0.0004, 0.004, 0.02])
@pytest.mark.parametrize(("nodes", "trials"), [((0.4, 0.4), 3), ((16.0, 16.0), 10)])
def test_ahead_believes_that_a_trial_which_waits_has_left_what_its_steps_take(
    cost: float, nodes: tuple[float, float], trials: int
) -> None:
    crowd = [trial(f"t{number}", N1, cpu=0.2) for number in range(trials)]
    sweep = Sweep(SLEEP_S, cost, cores=0.4)
    snapshot, known = followed(sweep, 20.0, crowd, nodes)
    for one in estimate_work(snapshot, known, 1.0).values():
        assert one.work / one.most == pytest.approx(sweep.trial_s - 20.0, rel=0.25)
        assert one.worth_offering >= 0.2


def test_a_trial_that_holds_a_device_is_as_long_as_its_steps_take_though_it_spins_on_a_core() -> None:
    # 0.9 core seconds in each second look like computing; on a device, only the clock counts.
    sweep = Sweep(wait_s=0.1, cost=0.9, cores=1.0)
    holding = replace(trial("a", N1, cpu=0.2), devices=Devices.of({"nvidia.com/gpu": 1}))
    snapshot, known = followed(sweep, 20.0, [holding], nodes=(1.0, 1.0))
    estimate = estimate_work(snapshot, known, 1.0)[holding.id]
    left = STEPS - 1 - snapshot.trials[0].progress.step  # type: ignore[union-attr]
    assert estimate.work / estimate.most == pytest.approx(left, rel=0.1)
    end = forecast(snapshot, known, (), DEFAULT).end
    assert end is not None
    assert end.likely == pytest.approx(sweep.trial_s - 1, rel=0.15)
