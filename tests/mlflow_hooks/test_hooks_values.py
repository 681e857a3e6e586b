"""Plain values that a script tracks come back after a move as they were; anything else is refused by name."""

import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlflow_hooks import MigrationExit, StateMismatchError, trial
from mlflow_hooks.values import Values

pytestmark = pytest.mark.usefixtures("in_this_process")


class OfModel:
    """A state that holds nothing but parts of a model."""

    of_model = True

    def save(self, folder: Path) -> None:
        (folder / "weights").touch()

    def load(self, folder: Path) -> None:
        assert (folder / "weights").exists()


class Own:
    """A state of the script's own."""

    def save(self, folder: Path) -> None:
        (folder / "own").touch()

    def load(self, folder: Path) -> None:
        assert (folder / "own").exists()


def there_and_back(folder: Path, values: Values) -> Values:
    values.save(folder)
    again = Values({"v": None})
    again.load(folder)
    return again


KEPT = [math.inf, -math.inf, 1, 2.5, True, "text", None, [1, [2.0, None]], {"a": {"b": [math.inf]}}]


@pytest.mark.parametrize("value", KEPT)
def test_a_plain_value_comes_back_as_it_was(tmp_path: Path, value: object) -> None:
    again = there_and_back(tmp_path, Values({"v": value}))
    assert again.v == value
    assert type(again.v) is type(value)


def test_nan_comes_back(tmp_path: Path) -> None:
    assert math.isnan(there_and_back(tmp_path, Values({"v": math.nan})).v)


@pytest.mark.parametrize("value", [np.float32(0.5), np.int64(3), np.bool_(True)])  # noqa: FBT003 - a scalar
def test_a_scalar_of_numpy_comes_back_as_a_number_of_python(tmp_path: Path, value: Any) -> None:  # noqa: ANN401 - a scalar
    again = there_and_back(tmp_path, Values({"v": value}))
    assert again.v == value
    assert type(again.v) is type(value.item())


@pytest.mark.parametrize("value", [(1, 2), {1, 2}, {1: "a"}, np.zeros(2), [object()], b"bytes", 1j])
def test_another_kind_of_value_is_refused_by_its_name_at_once(value: object) -> None:
    with pytest.raises(TypeError, match="tracked value patience"):
        Values({"patience": value})
    values = Values({"patience": 0})
    with pytest.raises(TypeError, match="tracked value patience"):
        values.patience = value


def test_what_was_put_into_a_list_later_is_checked_when_it_is_saved(tmp_path: Path) -> None:
    values = Values({"seen": [1]})
    values.seen.append(np.int64(2))
    values.save(tmp_path)
    assert values.seen == [1, 2]
    values.seen.append(object())
    with pytest.raises(TypeError, match=r"seen\[2\]"):
        values.save(tmp_path)


def test_a_name_that_is_not_tracked_is_no_slip_of_the_pen() -> None:
    values = Values({"best": 1.0})
    with pytest.raises(AttributeError, match="'bets' is not tracked"):
        values.bets = 0.5
    with pytest.raises(AttributeError, match="'bets' is not tracked"):
        values.bets  # noqa: B018 - reading is the point
    for name in ("save", "load", "_own"):
        with pytest.raises(AttributeError, match="cannot name a tracked value"):
            Values({name: 1})


def left_after_two_steps() -> None:
    with pytest.raises(MigrationExit), trial() as t:  # noqa: PT012 - leaving is the point
        values, more = t.track_values(best=math.inf, bad=0), t.track_values(rate=np.float32(0.5))
        for step in t.steps(10):
            values.best, values.bad = min(values.best, 10.0 - step), values.bad + 1
            more.rate /= 2
            if step == 1:
                os.kill(os.getpid(), signal.SIGTERM)


def test_values_come_back_with_the_step_that_they_belong_to() -> None:
    left_after_two_steps()
    with trial() as t:
        values, more = t.track_values(best=math.inf, bad=0), t.track_values(rate=0.5)
        assert (t.next_step, values.best, values.bad, more.rate) == (2, 9.0, 2, 0.125)


def test_a_script_that_tracks_the_values_no_more_is_told() -> None:
    left_after_two_steps()
    with trial() as t, pytest.raises(StateMismatchError, match="values"):
        t.begin(10)


@pytest.mark.parametrize(("states", "told"), [([OfModel()], 1), ([Own()], 0), ([OfModel(), Own()], 0), ([], 0)])
def test_where_only_a_model_comes_back_it_is_told_once(
    states: list[Any], told: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        with pytest.raises(MigrationExit), trial() as t:  # noqa: PT012 - leaving is the point
            for state in states:
                t.track(state)
            for _step in t.steps(10):
                os.kill(os.getpid(), signal.SIGTERM)
    assert capsys.readouterr().err.count("plain variables of the script") == told


def test_a_script_that_tracks_values_beside_its_model_is_told_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with pytest.raises(MigrationExit), trial() as t:  # noqa: PT012 - leaving is the point
            t.track(OfModel())
            t.track_values(best=1.0)
            for _step in t.steps(10):
                os.kill(os.getpid(), signal.SIGTERM)
    assert "plain variables" not in capsys.readouterr().err
