from collections.abc import Sequence
from dataclasses import replace

import pytest

from controllers.core.forecast import Forecast
from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.ports import ComingTrial
from controllers.forecast.forecaster import FORECAST_S, Forecaster
from controllers.policies import Default
from tests.controllers.forecast.sweeps import N2, at_step, ended, seen, trial


def watch(forecaster: Forecaster, now: float, *trials: Trial) -> None:
    snapshot, _ = seen((now, trials))
    forecaster.observe(snapshot, {}, {})


def nothing_to_come() -> Sequence[ComingTrial]:
    return []


def test_forecasts_are_told_every_few_seconds_however_often_it_looks() -> None:
    told: list[Forecast] = []
    forecaster = Forecaster(Default(), nothing_to_come, (told.append,))
    for second in range(21):
        watch(forecaster, float(second), at_step(trial("a"), second, float(second), 2.0))

    assert told[0] == Forecast(0.0)
    assert [forecast.at for forecast in told] == [0.0, FORECAST_S, 2 * FORECAST_S, 3 * FORECAST_S, 4 * FORECAST_S]
    assert told[-1].end is not None


def test_the_end_of_the_last_trial_is_told_at_once() -> None:
    told: list[Forecast] = []
    forecaster = Forecaster(Default(), nothing_to_come, (told.append,))
    watch(forecaster, 0.0, trial("a"))
    watch(forecaster, 2.0, ended(trial("a")))

    assert [forecast.at for forecast in told] == [0.0, 2.0]


def test_trials_that_are_to_come_are_asked_for_each_time() -> None:
    coming = [ComingTrial(TrialId("uid.sweep.b"), 1e4, 1.0)]
    told: list[Forecast] = []
    forecaster = Forecaster(Default(), lambda: coming, (told.append,))
    for second in range(0, 21, 5):
        watch(forecaster, float(second), at_step(trial("a"), second, float(second), 2.0))
        if second == 15:
            coming.clear()

    first, last = told[-2].end, told[-1].end
    assert first is not None
    assert last is not None
    assert 2e4 > first.high > first.low >= 1e4 > last.high


def test_what_trials_take_to_leave_after_their_last_step_is_learnt_from_those_that_ended() -> None:
    likely = []
    for leaving_s in (0.0, 12.0):
        told: list[Forecast] = []
        forecaster = Forecaster(Default(), nothing_to_come, (told.append,))
        for second in range(41):
            b = at_step(trial("b"), min(second, 20), float(min(second, 20)), 1.0, 20)
            a = at_step(trial("a", N2), second, float(second), 1.0)
            watch(forecaster, float(second), a, ended(b) if second >= 20 + leaving_s else b)
        likely.append(told[-1].trials[TrialId("uid.sweep.a")].likely)
    assert likely[1] - likely[0] == pytest.approx(12.0, abs=1.0)


def test_a_trial_that_had_ended_before_the_first_look_tells_nothing_of_leaving() -> None:
    likely = []
    for before in ((), (ended(at_step(trial("b"), 20, 1.0, 1.0, 20)),)):
        told: list[Forecast] = []
        forecaster = Forecaster(Default(), nothing_to_come, (told.append,))
        for second in range(30, 61):
            watch(forecaster, float(second), at_step(trial("a", N2), second, float(second), 1.0), *before)
        likely.append(told[-1].trials[TrialId("uid.sweep.a")].likely)
    assert likely[1] == pytest.approx(likely[0], abs=2.0)


def test_a_forecast_that_goes_wrong_is_logged_once_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Sequence[ComingTrial]:
        message = "no plan"
        raise RuntimeError(message)

    told: list[Forecast] = []
    forecaster = Forecaster(Default(), broken, (told.append,))
    for second in (0.0, 10.0, 20.0):
        watch(forecaster, second, trial("a"))

    assert told == []
    assert [record.message for record in caplog.records] == ["no forecast of this sweep"]


def told_of(trials: int, coming: int) -> list[Forecast]:
    told: list[Forecast] = []
    to_come = [ComingTrial(TrialId(f"uid.sweep.c{number}"), 1e3, 1.0) for number in range(coming)]
    forecaster = Forecaster(Default(), lambda: to_come, (told.append,))
    snapshot, _ = seen((0.0, [at_step(trial("a"), 1, 0.0, 1.0)]))
    many = tuple(replace(snapshot.trials[0], id=TrialId(f"uid.sweep.t{number}")) for number in range(trials))
    for second in range(0, 31, 5):
        forecaster.observe(Snapshot(float(second), many, snapshot.nodes), {}, {})
    return told


@pytest.mark.parametrize(("trials", "coming"), [(400, 0), (1, 399)])
def test_a_large_sweep_is_forecast_less_often(trials: int, coming: int) -> None:
    assert [forecast.at for forecast in told_of(trials, coming)] == [0.0, 20.0]


def test_of_more_trials_than_can_be_followed_nothing_is_foreseen() -> None:
    assert told_of(1, 1)[0].end is not None
    assert told_of(1, 6000) == [Forecast(0.0)]
