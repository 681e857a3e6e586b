"""A trial goes on from another's checkpoint: once, whole or not at all, with a history that has no gap."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlflow_hooks import BadEnvironmentError, MigrationExit, trial
from mlflow_hooks.checkpoints import Checkpoints
from mlflow_hooks.journal import points_of
from mlflow_hooks.lineage import TAKEN


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("SPECON_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path))
    monkeypatch.setenv("SPECON_SENDER", "sweep")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def attempt(
    monkeypatch: pytest.MonkeyPatch, name: str, upto: int, lr: float = 0.1, lineage: tuple[str, ...] = ()
) -> tuple[str, int]:
    """Train ``name`` up to a step, where it is asked to leave; return who made its weights, and where it began."""
    monkeypatch.setenv("SPECON_TRIAL_ID", f"u.s.{name}")
    monkeypatch.setenv("SPECON_ATTEMPT", os.urandom(8).hex())
    monkeypatch.setenv("SPECON_TRIAL_PARAMS", json.dumps({"lr": lr, "batch": 8, "kind": "x"}))
    monkeypatch.setenv("SPECON_LINEAGE", json.dumps(lineage) if lineage else "")
    with pytest.raises(MigrationExit), trial() as t:  # noqa: PT012 - leaving is the point
        kept = t.track_values(by=name)
        made_by, began = kept.by, t.next_step
        for step in t.steps(100):
            kept.by = name
            t.log(loss=float(step), lr=lr)
            if step == upto - 1:
                os.kill(os.getpid(), signal.SIGTERM)
    return made_by, began


def history(root: Path, name: str, key: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in points_of(root / f"u.s.{name}") if point.key == key]


def test_it_goes_on_with_the_parents_weights_and_the_parents_points_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt(monkeypatch, "t001", 8, lr=0.5)
    attempt(monkeypatch, "t000", 3, lr=0.1)
    assert attempt(monkeypatch, "t000", 12, lr=0.6, lineage=("t001",)) == ("t001", 8)
    rates = [0.1] * 3 + [0.5] * 5 + [0.6] * 4
    assert history(tmp_path, "t000", "lr") == list(enumerate(rates))
    assert [step for step, _ in history(tmp_path, "t000", "loss")] == list(range(12))
    assert history(tmp_path, "t000", "specon.param.lr") == [(0, 0.1), (8, 0.6)]
    assert history(tmp_path, "t000", "specon.param.batch") == []
    assert history(tmp_path, "t001", "lr") == [(step, 0.5) for step in range(8)]


def test_where_the_parent_is_behind_no_step_is_logged_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt(monkeypatch, "t001", 4, lr=0.5)
    attempt(monkeypatch, "t000", 7, lr=0.1)
    assert attempt(monkeypatch, "t000", 9, lr=0.6, lineage=("t001",)) == ("t001", 4)
    assert history(tmp_path, "t000", "lr") == list(enumerate([0.1] * 7 + [0.6] * 2))
    newest = Checkpoints(tmp_path / "u.s.t000/checkpoints").newest()
    assert newest is not None
    assert newest.step == 9


def test_a_parent_is_followed_once_however_many_attempts_are_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt(monkeypatch, "t001", 5)
    attempt(monkeypatch, "t000", 5)
    attempt(monkeypatch, "t000", 6, lineage=("t001",))
    attempt(monkeypatch, "t001", 20)
    assert attempt(monkeypatch, "t000", 8, lineage=("t001",)) == ("t000", 6)
    assert attempt(monkeypatch, "t000", 30, lr=0.2, lineage=("t001", "t001")) == ("t001", 20)
    assert attempt(monkeypatch, "t000", 31, lr=0.2, lineage=("t001", "t001")) == ("t000", 30)


def test_an_attempt_that_was_killed_in_the_middle_is_made_up_for_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt(monkeypatch, "t001", 8, lr=0.5)
    attempt(monkeypatch, "t000", 3, lr=0.1)
    attempt(monkeypatch, "t000", 12, lr=0.6, lineage=("t001",))
    (tmp_path / "u.s.t000" / TAKEN).unlink()
    assert attempt(monkeypatch, "t000", 13, lr=0.6, lineage=("t001",)) == ("t001", 8)
    assert [step for step, _ in history(tmp_path, "t000", "loss")] == list(range(13))


def test_without_a_whole_checkpoint_of_its_parent_it_goes_on_from_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt(monkeypatch, "t001", 4)
    attempt(monkeypatch, "t000", 3)
    for checkpoint in (tmp_path / "u.s.t001/checkpoints").iterdir():
        next(path for path in checkpoint.rglob("*") if path.is_file() and path.name != "manifest.json").write_text("x")
    assert attempt(monkeypatch, "t000", 5, lineage=("t001",)) == ("t000", 3)
    shutil.rmtree(tmp_path / "u.s.t001")
    assert attempt(monkeypatch, "t000", 6, lineage=("t001", "t001")) == ("t000", 5)
    assert "none is in t001" in capsys.readouterr().err
    assert not (tmp_path / "u.s.t001").exists()


def test_a_clone_keeps_its_own_count_of_cpu_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt(monkeypatch, "t001", 4)
    attempt(monkeypatch, "t000", 3)
    for checkpoint in (tmp_path / "u.s.t001/checkpoints").iterdir():
        manifest = json.loads((checkpoint / "manifest.json").read_text())
        (checkpoint / "manifest.json").write_text(json.dumps({**manifest, "cpu_seconds": 1e6}))
    attempt(monkeypatch, "t000", 5, lineage=("t001",))
    newest = Checkpoints(tmp_path / "u.s.t000/checkpoints").newest()
    assert newest is not None
    assert newest.cpu_seconds < 1e5


@pytest.mark.parametrize("text", ["{", "{}", '["../x"]', "[1]"])
def test_a_lineage_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SPECON_TRIAL_ID", "u.s.t000")
    monkeypatch.setenv("SPECON_LINEAGE", text)
    with pytest.raises(BadEnvironmentError, match="SPECON_LINEAGE"):
        trial()
