import math
from dataclasses import replace
from statistics import stdev

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controllers.lab.simulation.experiments.arrivals import generator
from controllers.lab.simulation.experiments.jobs import BI_RNN, GRU, VAE, Curve
from controllers.worlds.simulated.errors import WorkloadError


@pytest.mark.parametrize(("curve", "reduction"), [(VAE, 0.65), (BI_RNN, 0.98), (GRU, 0.90)])
def test_the_first_fifth_of_the_time_brings_what_the_thesis_says(curve: Curve, reduction: float) -> None:
    assert curve.reduction(0.2) == pytest.approx(reduction, abs=1e-6)
    assert curve.reduction(1.0) == 1.0


def test_gru_has_nearly_all_of_its_reduction_at_27_percent() -> None:
    assert GRU.reduction(0.27) == pytest.approx(0.99, abs=1e-3)


@given(st.floats(0.65, 0.995), st.floats(0.3, 3.0))
@example(0.995, 0.3125)
def test_a_curve_without_noise_only_falls_and_ends_at_its_last_value(early: float, shape: float) -> None:
    curve = Curve(early, shape, first=5.0, last=1.0)
    reports = curve.reports(100.0, 50, generator(0))
    values = [report.value for report in reports]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(1.0)
    assert (reports[0].work_s, reports[-1].work_s) == (2.0, 100.0)
    assert curve.reduction(0.2) == pytest.approx(early, abs=1e-4)


def test_noise_is_a_share_of_the_whole_reduction() -> None:
    smooth = VAE.reports(100.0, 2000, generator(1))
    noisy = replace(VAE, noise=0.05).reports(100.0, 2000, generator(1))
    errors = [a.value - b.value for a, b in zip(noisy, smooth, strict=True)]
    assert stdev(errors) == pytest.approx(0.05 * (VAE.first - VAE.last), rel=0.1)


@pytest.mark.parametrize(
    "wrong", [{"early": 0.2}, {"early": 1.0}, {"shape": 0.0}, {"noise": -0.1}, {"noise": math.nan}]
)
def test_a_curve_that_can_not_be_is_refused_with_its_value(wrong: dict[str, float]) -> None:
    (name, value), *_ = wrong.items()
    with pytest.raises(WorkloadError, match=rf"a curve's {name} must be between .*, not {value}"):
        replace(VAE, **wrong)
