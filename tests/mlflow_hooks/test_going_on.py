"""Steps tell whether a training that was started again goes on."""

import pytest

from mlflow_hooks.going_on import beginning_of, goes_on


@pytest.mark.parametrize(
    ("before", "first", "goes"),
    [
        ((0, 1, 2, 3), 4, True),
        ((0, 1, 2, 3), 3, True),
        ((0, 1, 2, 3), 0, False),
        ((1, 2, 3), 1, False),
        ((1, 2, 3), 4, True),
        ((0,), 1, True),
        ((0,), 0, False),
        ((0, 0, 0, 0), 0, False),
        ((100, 200, 300), 100, False),
        ((100, 200, 300), 200, True),
        ((37, 75, 112), 41, False),
        ((37, 75, 112), 118, True),
        ((0, 1, 2, 0, 1), 1, True),
        ((), 7, False),
    ],
)
def test_what_stands_beyond_the_second_step_goes_on(before: tuple[int, ...], first: int, *, goes: bool) -> None:
    assert goes_on(beginning_of(before), first) is goes
