"""What is done for MLflow at the end of a sweep: bounded, told, and left at once when asked to."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from controllers.core.errors import SweepInterrupted
from controllers.local_run import finishing
from controllers.local_run.finishing import Courier, Lack, wait_for
from controllers.local_run.services import RunServices
from mlflow_hooks.delivery import DeletedRunError
from mlflow_hooks.journal import Journal
from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import Ending, Identity, Run, write_ending, write_identity, write_run
from mlflow_hooks.tracking_server import REFUSED, TrackingError


class Server:
    """A tracking server that takes no points for some runs: its ``away`` ones, and those that were ``deleted``."""

    def __init__(self, away: Sequence[str] = (), deleted: Sequence[str] = ()) -> None:
        self.away, self.deleted = away, deleted
        self.taken: dict[str, int] = {}
        self.ended: dict[str, str] = {}

    def log_metrics(self, run: str, points: Sequence[Point]) -> None:
        if run in self.away:
            message = "away"
            raise TrackingError(message)
        if run in self.deleted:
            message = "deleted"
            raise TrackingError(message, REFUSED)
        self.taken[run] = self.taken.get(run, 0) + len(points)

    def is_active(self, run: str) -> bool:
        return run not in self.deleted

    def set_status(self, run: str, status: str, ended_at: int | None = None) -> None:
        assert ended_at
        if run in self.deleted:
            message = "deleted"
            raise TrackingError(message, REFUSED)
        self.ended[run] = status


class Screen:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def folders(root: Path, *names: str) -> list[Path]:
    """Return the folders of trials that have ended, each with three points that MLflow lacks."""
    for name in names:
        (root / name).mkdir()
        write_identity(root / name, Identity(name, name, "e", None, None, {}))
        write_run(root / name, Run(name, has_params=True))
        write_ending(root / name, Ending("FINISHED", 1))
        journal = Journal(root / name)
        journal.append([Point("loss", 0.5, step, 1) for step in range(3)])
        journal.close()
    return [root / name for name in names]


def waited(
    of: Sequence[Path],
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    conclude: Callable[[], None],
    *,
    stop: bool,
    parents: Callable[[], Mapping[str, str]] = dict,
) -> tuple[Lack | None, Courier, Screen]:
    monkeypatch.setattr(finishing, "GIVE_UP_S", 0.8)
    monkeypatch.setattr(finishing, "_QUIET_S", 0.1)
    screen, asked = Screen(), threading.Event()
    if stop:
        asked.set()
    services = RunServices(cast("Any", screen), asked, cast("Any", None), "http://user:secret@there", None, {}, {})
    courier = Courier(of, parents, conclude, cast("Any", server))
    courier.start()
    return wait_for(courier, services), courier, screen


def test_all_is_brought_and_the_runs_are_ended_before_the_sweep_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, concluded = Server(), list[dict[str, str]]()
    of = folders(tmp_path, "a", "b")
    lack, _, _ = waited(of, server, monkeypatch, lambda: concluded.append(dict(server.ended)), stop=False)
    assert (lack, server.taken) == (None, {"a": 3, "b": 3})
    assert concluded == [{"a": "FINISHED", "b": "FINISHED"}]


def test_a_trial_that_mlflow_takes_nothing_of_keeps_no_other_waiting_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(away=["a"])
    lack, courier, screen = waited(folders(tmp_path, "a", "b"), server, monkeypatch, lambda: None, stop=False)
    assert (lack, server.taken, courier.problem) == (Lack(3, 1), {"b": 3}, "away")
    assert "lacks" in screen.said[0]
    assert "secret" not in "".join(screen.said)


def test_nothing_is_brought_before_the_run_of_the_sweep_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> Mapping[str, str]:
        message = "no run of the sweep"
        raise OSError(message)

    server = Server()
    lack, courier, _ = waited(folders(tmp_path, "a"), server, monkeypatch, lambda: None, stop=False, parents=away)
    assert (lack, server.taken, courier.problem) == (Lack(3, 1), {}, "no run of the sweep")


def test_a_sweep_whose_end_alone_fails_is_not_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        message = "away"
        raise OSError(message)

    lack, _, _ = waited(folders(tmp_path, "a"), Server(), monkeypatch, away, stop=False)
    assert lack == Lack(0, 0)
    assert str(lack) == "how the runs ended"


@pytest.mark.parametrize("unsent", [True, False])
def test_a_run_that_somebody_deleted_is_told_and_waited_for_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, unsent: bool
) -> None:
    of = folders(tmp_path, "a", "b")
    if not unsent:
        (tmp_path / "a" / "points.jsonl").write_text("")
    server = Server(deleted=["a"])
    lack, courier, _ = waited(of, server, monkeypatch, lambda: None, stop=False)
    assert (lack, server.taken) == (None, {"b": 3})
    assert [line.partition(" kept")[0] for line in courier.deleted] == [f"a: {3 if unsent else 0} points"]
    assert str(DeletedRunError("a")) in courier.deleted[0]


def test_who_is_asked_to_stop_leaves_and_tells_what_is_lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SweepInterrupted, match="MLflow lacks 6 points of 2 trials"):
        waited(folders(tmp_path, "a", "b"), Server(away=["a", "b"]), monkeypatch, lambda: None, stop=True)
