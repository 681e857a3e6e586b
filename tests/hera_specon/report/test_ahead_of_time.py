"""What pages need is imported while the last trials run, and no sooner."""

import importlib
import threading

import pytest

from controllers.core.model import Direction, NodeName, Phase, Snapshot, Trial, TrialId
from hera_specon.report import ahead_of_time
from hera_specon.report.ahead_of_time import PageImports


def seen(running: int, waiting: int = 0) -> Snapshot:
    phases = [Phase.RUNNING] * running + [Phase.PENDING] * waiting + [Phase.SUCCEEDED]
    trials = (
        Trial(TrialId(f"t{n}"), phase, 1.0, 1.0, 0.0, Direction.MINIMIZE, 0.0, (NodeName("n"),))
        for n, phase in enumerate(phases)
    )
    return Snapshot(0.0, tuple(trials), ())


def test_imports_begin_once_a_core_is_idle_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    done = threading.Event()

    def imported(name: str) -> None:
        names.append(name)
        done.set()
        raise ImportError

    monkeypatch.setattr(importlib, "import_module", imported)
    monkeypatch.setattr(ahead_of_time, "_SLOW", ("a",))
    pages = PageImports(cores=2)
    for snapshot in (seen(8), seen(2), seen(1, waiting=1)):
        pages.observe(snapshot, {}, {})
    assert not done.wait(0.2)
    for _ in range(3):
        pages.observe(seen(1), {}, {})
    assert done.wait(10)
    assert names == ["a"]
