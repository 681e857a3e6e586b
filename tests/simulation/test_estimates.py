import math

import pytest

from controllers.lab.simulation.evaluation import EstimateError, estimate


def test_the_interval_is_students() -> None:
    found = estimate([8.0, 10.0, 12.0])
    assert found.mean == 10.0
    # The table's t for 2 degrees of freedom is 4.303; the standard error is 2 / sqrt(3).
    assert found.half_width == pytest.approx(4.303 * 2 / math.sqrt(3), rel=1e-3)
    assert found.to_dict() == {"mean": 10.0, "ci95": pytest.approx([10.0 - 4.969, 10.0 + 4.969], rel=1e-3)}


def test_one_seed_has_no_interval() -> None:
    assert estimate([3.0]).to_dict() == {"mean": 3.0, "ci95": None}


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_has_no_mean_is_refused(values: list[float]) -> None:
    with pytest.raises(EstimateError, match="finite value"):
        estimate(values)
