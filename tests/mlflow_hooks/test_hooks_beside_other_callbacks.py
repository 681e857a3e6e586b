"""What stands beside an adapter comes back after a move: early stopping, the best model, plateaus, averages."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlflow_hooks.states import OtherCallbacks, callbacks_around, callbacks_before
from tests.mlflow_hooks.hook_jobs import RunJob

TOLD = [
    "Behind behind TrialCallback in callbacks=[...] will start again after a move: put TrialCallback last",
    "CSVLogger will remove its rows after a move: CSVLogger(path, append=True) keeps them",
]
STOPPED = {"best_score": 2.0}
TABLE: dict[str, dict[str, dict[str, Any]]] = {
    "lightning": {
        "plain": {
            "epochs": 10,
            "best": "lightning_logs/version_0/checkpoints/epoch=3-step=16.ckpt",
            "lr": pytest.approx(0.0005),
            "trained": [True] * 4,
            **STOPPED,
        },
        "swa": {"epochs": 12},
        "ema": {"epochs": 12},
    },
    "huggingface": {
        "plain": {
            "steps": 20,
            "best": "checkpoint-8",
            "lr": pytest.approx(0.0005),
            "evaluations": 10,
            "trained": [True] * 4,
            **STOPPED,
        }
    },
    "keras": {"plain": {"stopped": 9, "best_epoch": 3, "lr": pytest.approx(0.0001)}, "ema": {"notices": TOLD}},
    "boosters": {"xgboost": {"rounds": 10, "best": 3, "kept": 4, **STOPPED}, "lightgbm": {"rounds": 10, "best": 4}},
}
LIBRARIES = {
    "lightning": ("lightning",),
    "huggingface": ("transformers",),
    "keras": ("keras", "torch"),
    "boosters": ("xgboost", "lightgbm"),
}


@pytest.mark.adapter
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_what_stands_beside_an_adapter_is_after_three_moves_as_in_a_training_that_never_moved(
    run_job: RunJob, name: str
) -> None:
    for library in LIBRARIES[name]:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"needs {library}")
    ended = run_job(f"{name}_moves", "none", OMP_NUM_THREADS="1")
    for kind, expected in TABLE[name].items():
        codes = json.loads(ended.out[f"{kind}-codes"])
        assert codes == [0, *[75] * (len(codes) - 2), 0], ended.err
        whole, moved = json.loads(ended.out[f"{kind}-whole"]), json.loads(ended.out[f"{kind}-moved"])
        assert whole == {**whole, **expected}
        assert moved == whole


class Counter:
    """A callback that counts as people write it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.best = float("inf")
        self.seen: list[float] = []
        self.pair: Any = None
        self.file: Any = None

    def see(self, value: float) -> None:
        self.best = min(self.best, value)
        self.seen.append(value)
        self.pair = (value, {"a": None})


def kept(callback: Counter, folder: Path) -> OtherCallbacks:
    others = OtherCallbacks()
    others.meet([callback])
    callback.see(3.0)
    others.write(others.held(), folder)
    there = OtherCallbacks()
    there.load(folder)
    return there


def test_what_a_callback_counted_comes_back_and_what_the_script_sets_stays(tmp_path: Path) -> None:
    there = kept(Counter(5), tmp_path)
    callback = Counter(7)
    there.meet([callback])
    assert vars(callback) == {"limit": 7, "best": 3.0, "seen": [3.0], "pair": (3.0, {"a": None}), "file": None}


def test_what_is_no_plain_value_is_left_alone(tmp_path: Path) -> None:
    callback = Counter(5)
    callback.file = [object()]
    there = kept(callback, tmp_path)
    other = Counter(5)
    other.file = "own"
    there.meet([other])
    assert (other.file, other.best) == ("own", 3.0)


def test_two_callbacks_of_a_kind_are_told_apart_and_a_new_one_begins(tmp_path: Path) -> None:
    first, second, others = Counter(1), Counter(2), OtherCallbacks()
    others.meet([first, second])
    second.see(1.0)
    others.write(others.held(), tmp_path)
    there, callbacks = OtherCallbacks(), [Counter(1), Counter(2), Counter(3)]
    there.load(tmp_path)
    there.meet(callbacks)
    assert [callback.seen for callback in callbacks] == [[], [1.0], []]


def test_arrays_come_back_and_infinities_too(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    callback = Counter(1)
    others = OtherCallbacks()
    others.meet([callback])
    callback.pair, callback.best = [np.arange(3), np.float32(0.5)], float("-inf")
    others.write(others.held(), tmp_path)
    there, other = OtherCallbacks(), Counter(1)
    there.load(tmp_path)
    there.meet([other])
    assert (other.pair[0].tolist(), other.pair[1], other.best) == ([0, 1, 2], 0.5, float("-inf"))


def test_a_checkpoint_without_callbacks_gives_nothing_back(tmp_path: Path) -> None:
    others, callback = OtherCallbacks(), Counter(1)
    others.load(tmp_path)
    others.meet([callback])
    assert callback.seen == []


def test_the_list_that_calls_a_callback_is_found_and_where_there_is_none_it_is_alone() -> None:
    class Mine:
        found: list[Any]

        def call(self) -> None:
            self.found = callbacks_around(self)

    mine = Mine()

    def call_each(callbacks: list[Any]) -> None:
        for callback in callbacks[-1:]:
            callback.call()

    call_each([1, mine])
    assert mine.found == [1, mine]
    alone = Mine()
    alone.call()
    assert alone.found == [alone]


def test_callbacks_behind_the_adapters_own_are_told_of_but_for_those_of_the_library() -> None:
    class Mine:
        before: list[Any]

        def __init__(self, told: list[str]) -> None:
            self.told = told

        def call(self) -> None:
            self.before = callbacks_before(self, self.told.append, without={"int"})

    def call_second(callbacks: list[Any]) -> list[Any]:
        callbacks[1].call()
        return [callbacks[1].before, callbacks[1].told]

    assert call_second([1.0, Mine([]), 2]) == [[1.0], []]
    before, (told,) = call_second([1.0, Mine([]), Counter(1), 2])
    assert before == [1.0]
    assert told.startswith("Counter behind Mine")
    assert told.endswith("put Mine last")


@pytest.mark.adapter
@pytest.mark.slow
def test_a_keeper_of_lightning_goes_on_in_its_folder_and_one_that_is_gone_is_told_of(tmp_path: Path) -> None:
    callbacks = pytest.importorskip("lightning.pytorch.callbacks")
    adapter = pytest.importorskip("mlflow_hooks.lightning")
    told: list[str] = []
    trial = SimpleNamespace(track=lambda *_: None, tell=told.append)
    keepers = [callbacks.ModelCheckpoint(monitor=name) for name in ("there", "gone", "new")]
    own = callbacks.ModelCheckpoint(dirpath=tmp_path / "own", monitor="own")
    folders = [str(tmp_path), str(tmp_path / "gone"), None, str(tmp_path)]
    callback = adapter.TrialCallback(trial)
    every = [*keepers, own]
    callback._state.beside = {"folders": {it.state_key: at for it, at in zip(every, folders, strict=True) if at}}
    callback.setup(SimpleNamespace(checkpoint_callbacks=every))
    assert [it.dirpath for it in every] == [str(tmp_path), None, None, str(tmp_path / "own")]
    (line,) = told
    assert str(tmp_path / "gone") in line
    assert "dirpath=" in line
