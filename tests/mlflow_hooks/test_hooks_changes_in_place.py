"""A list that changes in place while a trial trains is told of before a move would lose it."""

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlflow_hooks import trial
from mlflow_hooks.state_folder import NOTICES

pytestmark = pytest.mark.usefixtures("in_this_process")


class Kept:
    """A state that keeps nothing."""

    def save(self, folder: Path) -> None:
        (folder / "kept").touch()

    def load(self, folder: Path) -> None:
        assert (folder / "kept").exists()


class Data:
    """Rows that shuffle themselves."""

    def __init__(self) -> None:
        self.rows = list(range(50))

    def shuffle(self) -> None:
        random.shuffle(self.rows)


def notices(folder: Path) -> list[str]:
    path = folder / "s.a" / NOTICES
    return json.loads(path.read_text()) if path.exists() else []


def test_a_list_shuffled_in_place_is_told_of_once_with_the_way_to_keep_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = list(range(50))
    same_rows = rows
    with trial(checkpoint_every_s=60) as t:
        t.track(Kept())
        for _ in t.steps(12):
            random.shuffle(same_rows)
    (told,) = notices(tmp_path)
    assert "rows changes in place" in told
    assert "t.track_values(rows=...)" in told
    assert capfd.readouterr().err.count("rows changes in place") == 1


@pytest.mark.parametrize("kind", ["history", "counts", "seen", "order", "pairs", "data"])
def test_whatever_else_changes_in_place_is_told_of_too(tmp_path: Path, kind: str) -> None:
    np: Any = pytest.importorskip("numpy")
    history: list[float] = [1.0]
    counts, seen, order, data = {"a": 0}, {0}, np.arange(50), Data()
    pairs = [(f"{i}.png", i) for i in range(50)]
    with trial(checkpoint_every_s=60) as t:
        t.track(Kept())
        for step in t.steps(12):
            if kind == "history":
                history.append(float(step))
            elif kind == "counts":
                counts["a"] += 1
            elif kind == "seen":
                seen.add(step + 1)
            elif kind == "order":
                np.random.default_rng(step).shuffle(order)
            elif kind == "pairs":
                random.shuffle(pairs)
            else:
                data.shuffle()
    (told,) = notices(tmp_path)
    assert told.startswith("data.rows" if kind == "data" else kind)


def test_lists_made_in_each_step_filled_once_tracked_or_unchanged_are_not_told_of(tmp_path: Path) -> None:
    fixed, cache, heavy = list(range(50)), dict[int, int](), [SimpleNamespace()]
    with trial(checkpoint_every_s=60) as t:
        t.track(Kept())
        values = t.track_values(order=list(range(50)))
        order = values.order
        for step in t.steps(30):
            sample = random.sample(fixed, 50)
            again = list(fixed)
            random.shuffle(again)
            random.shuffle(values.order)
            cache.update(zip(fixed, sample if step == 0 else list(cache.values()), strict=False))
            heavy.append(SimpleNamespace())
            assert order is values.order
            assert len(again) == len(sample)
    assert notices(tmp_path) == []


def test_a_loop_that_tracks_nothing_is_not_looked_at(tmp_path: Path) -> None:
    rows = list(range(50))
    with trial(checkpoint_every_s=60) as t:
        for _ in t.steps(12):
            random.shuffle(rows)
    assert notices(tmp_path) == []
