"""What earlier sweeps tell of lengths: from the first second, on this machine's scale, and not for longer than true."""

from dataclasses import replace

import pytest

from controllers.core.earlier import Earlier, EarlierTrial
from controllers.core.model import Snapshot, Trial
from controllers.core.parameters import bound_parameters
from controllers.core.ports import ComingTrial
from controllers.forecast.ranges import PolicyTraits, forecast
from controllers.policies import Ahead
from controllers.policies.kit.earlier_lengths import believed_earlier
from controllers.policies.kit.lengths import EstimateSource, Known, Lengths
from controllers.policies.kit.work_left import SweepMeasurements, estimate_work, measure_sweep
from tests.controllers.policies.kit.test_lengths import known, looks, running, waiting
from tests.controllers.policies.policy_fakes import node, snapshot

WIDTHS = (32, 64, 96, 128, 160, 256)


def before(*widths: float, steps: float = 100, cost: float = 0.1) -> Earlier:
    """Return trials of an earlier sweep: a step costs so much for each unit of the width."""
    trials = [
        EarlierTrial(f"old.s.t{n}", bound_parameters({"width": width, "batch": n}), None, (), steps, width * cost)
        for n, width in enumerate(widths)
    ]
    return Earlier({"s": tuple(trials)})


def guessed(earlier: Earlier, own: list[Known], width: float) -> tuple[float, EstimateSource]:
    guess = Lengths(own, believed_earlier(earlier, own)).left(known(None, None, width=width), 0)
    return guess.left, guess.source


def test_the_first_trials_are_told_apart_before_any_has_reported() -> None:
    own = [known(None, None, width=width) for width in WIDTHS]
    for width in (40, 200):
        left, source = guessed(before(*WIDTHS), own, width)
        assert left == pytest.approx(10 * width, rel=0.1)
        assert source is EstimateSource.EARLIER
    guess = Lengths(own, believed_earlier(before(*WIDTHS), own)).left(own[0], 0)
    assert 0.4 < guess.spread < 1.0  # another machine may be twice as fast


def test_without_earlier_sweeps_nothing_changes() -> None:
    own = [known(100, width / 10, width=width) for width in WIDTHS]
    assert believed_earlier(Earlier(), own) == []
    assert Lengths(own).left(known(None, None, width=512), 0).source is EstimateSource.PARAMETERS


def test_another_machine_is_another_speed() -> None:
    own = [known(100, 4 * 0.1 * 64, width=64), *(known(None, None, width=width) for width in WIDTHS)]
    left, source = guessed(before(*WIDTHS), own, 256)
    assert left == pytest.approx(4 * 2560, rel=0.15)
    assert source is EstimateSource.PARAMETERS


def test_own_trials_take_the_place_of_earlier_ones() -> None:
    many = before(*(16.0 + n for n in range(64)))
    counts = [len(believed_earlier(many, [known(100, 5.0, width=50 + n) for n in range(own)])) for own in (0, 8, 31)]
    assert counts == [64, 48, 2]
    assert believed_earlier(many, [known(100, 5.0, width=50 + n) for n in range(32)]) == []


@pytest.mark.parametrize(
    ("own", "steps_hold", "costs_hold"),
    [
        ([known(1000, w / 10, width=w) for w in WIDTHS[:3]], False, True),
        ([known(100, 1000 / w**2, width=w) for w in WIDTHS[:4]], True, False),
        ([known(120, w / 9, width=w) for w in WIDTHS[:4]], True, True),
        ([known(1000, 1000 / w**2, width=w) for w in WIDTHS[:2]], True, True),
    ],
)
def test_what_the_sweeps_own_trials_belie_is_believed_no_more(
    own: list[Known],
    steps_hold: bool,  # noqa: FBT001 - a case
    costs_hold: bool,  # noqa: FBT001 - a case
) -> None:
    believed = believed_earlier(before(*WIDTHS), own)
    assert {trial.steps is not None for trial in believed} == {steps_hold}
    assert {trial.cost is not None for trial in believed} == {costs_hold}


def test_a_belief_that_was_wrong_costs_no_more_than_the_first_reports() -> None:
    own = [known(20, 300 / width, width=width) for width in WIDTHS]
    left, source = guessed(before(*WIDTHS), own, 64)
    assert left == pytest.approx(20 * 300 / 64, rel=0.1)
    assert source is EstimateSource.PARAMETERS


def test_parameters_that_only_the_earlier_sweep_had_explain_nothing_here() -> None:
    own = [known(None, None, width=width) for width in WIDTHS]
    assert {name for one in believed_earlier(before(*WIDTHS), own) for name, _ in one.parameters} == {"width"}


def seen(trials: list[Trial], earlier: Earlier) -> tuple[Snapshot, SweepMeasurements]:
    look = replace(snapshot(0.0, trials, [node("n", 64.0)]), earlier=earlier)
    return look, measure_sweep(look, SweepMeasurements())


def test_ahead_and_forecasts_know_lengths_from_the_first_second() -> None:
    trials = [waiting(f"s.t{n}", width=width) for n, width in enumerate(WIDTHS)]
    look, measured = seen(trials, before(*WIDTHS))
    work = {name: estimate.work for name, estimate in estimate_work(look, measured, 1.0).items()}
    assert sorted(work, key=work.__getitem__) == [trial.id for trial in trials]
    assert all(estimate.dependable for estimate in estimate_work(look, measured, 1.0).values())
    place = replace(look, nodes=(node("n", 1.0),))
    cold = forecast(replace(place, earlier=Earlier()), measured, [], PolicyTraits.by(Ahead()))
    warm = forecast(place, measured, [ComingTrial(trials[0].id, 0.0, 1.0)], PolicyTraits.by(Ahead()))
    assert cold.end is None
    assert warm.end is not None
    assert warm.end.likely == pytest.approx(10 * sum(WIDTHS), rel=0.5)


def test_a_trial_that_reports_goes_by_its_own_reports() -> None:
    first, second = looks([running("s.t0", 10, 50, 0.5, width=64)])
    measured = measure_sweep(replace(second, earlier=before(*WIDTHS)), measure_sweep(first, SweepMeasurements()))
    (estimate,) = estimate_work(replace(second, earlier=before(*WIDTHS)), measured, 1.0).values()
    assert estimate.source is EstimateSource.OWN
