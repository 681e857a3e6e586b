"""How many of the threads that PyTorch may have pay: found in the first steps by what a step costs."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mlflow_hooks import threads, trial
from mlflow_hooks.threads import ThreadSearch, follow_share

Cost = Callable[[int], float]
SMALL: Cost = float
"""CPU seconds of a step by the number of threads: all that is added is waiting for one another."""
LARGE: Cost = lambda count: 1.0 + 0.02 * count  # noqa: E731 - beside its opposite


@dataclass
class Torch:
    """A PyTorch on eight cores, whose clock of CPU seconds goes on with each step."""

    cost: Cost = SMALL
    count: int = 3
    now: float = 0.0
    counts: list[int] = field(default_factory=list)

    def get_num_threads(self) -> int:
        return self.count

    def set_num_threads(self, count: int) -> None:
        self.count = count

    def step(self, more: float = 0.0) -> None:
        self.counts.append(self.count)
        self.now += 0.1 * self.cost(self.count) + more


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Torch:
    torch = Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(threads, "_OWN_CGROUPS", tmp_path / "none")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    monkeypatch.setattr("mlflow_hooks.threads.time.process_time", lambda: torch.now)
    for name in ("OMP_NUM_THREADS", "SPECON_CPUS", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return torch


def trained(torch: Torch, folder: Path, steps: int = 40) -> ThreadSearch:
    search = ThreadSearch(folder)
    follow_share(search.most)
    for _ in range(steps):
        torch.step()
        search.step_done()
    return search


def test_threads_that_only_cost_go(torch: Torch, tmp_path: Path) -> None:
    assert trained(torch, tmp_path).most == 1
    assert torch.counts[0] == 8
    assert list(dict.fromkeys(torch.counts)) == [8, 4, 2, 1]
    assert torch.counts[-20:] == [1] * 20


def test_threads_that_pay_stay(torch: Torch, tmp_path: Path) -> None:
    torch.cost = LARGE
    assert trained(torch, tmp_path).most is None
    assert torch.counts.count(4) <= 5
    assert torch.counts[-20:] == [8] * 20
    assert not list(tmp_path.iterdir())


def test_the_search_ends_where_fewer_threads_save_nothing_more(torch: Torch, tmp_path: Path) -> None:
    torch.cost = lambda count: 3.0 if count > 4 else 1.0
    assert trained(torch, tmp_path).most == 4
    assert torch.counts[-20:] == [4] * 20


def test_a_later_attempt_goes_on_with_what_was_found(torch: Torch, tmp_path: Path) -> None:
    trained(torch, tmp_path)
    torch.counts, torch.cost = [], LARGE
    assert trained(torch, tmp_path).most == 1
    assert set(torch.counts) == {1}


def test_single_dear_steps_mislead_nobody(torch: Torch, tmp_path: Path) -> None:
    torch.cost = LARGE
    search = ThreadSearch(tmp_path)
    follow_share()
    for number in range(40):
        torch.step(more=5.0 if number in {0, 2} else 0.0)
        search.step_done()
    assert (search.most, torch.count) == (None, 8)


def test_of_long_steps_one_is_enough(torch: Torch, tmp_path: Path) -> None:
    torch.cost = lambda count: 200.0 + count
    trained(torch, tmp_path, 4)
    assert torch.counts == [8, 8, 4, 8]


def test_a_change_of_share_undoes_neither_what_was_found_nor_what_is_tried(
    torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = trained(torch, tmp_path, 7)
    tried = torch.count
    assert tried < 8
    follow_share(search.most)
    assert torch.count == tried
    monkeypatch.setenv("SPECON_CPUS", "1")
    follow_share(search.most)
    assert torch.count == 1


def test_the_last_trial_uses_the_cores_that_others_leave(
    torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, clock = tmp_path / "cpus", iter(range(1_000_000))
    monkeypatch.setenv("SPECON_CPUS_FILE", str(part))
    monkeypatch.setattr("mlflow_hooks.threads.time.monotonic", lambda: float(next(clock)))
    torch.cost = LARGE
    part.write_text("1")
    search = trained(torch, tmp_path / "state")
    assert set(torch.counts) == {1}
    part.write_text("4")
    for _ in range(40):
        torch.step()
        search.step_done()
    assert (max(torch.counts), torch.count) == (4, 4)
    part.write_text("0.5")
    for _ in range(2):
        torch.step()
        search.step_done()
    assert torch.count == 1


def test_more_cores_are_not_used_where_more_threads_do_not_pay(
    torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, clock = tmp_path / "cpus", iter(range(1_000_000))
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("SPECON_CPUS_FILE", str(part))
    monkeypatch.setattr("mlflow_hooks.threads.time.monotonic", lambda: float(next(clock)))
    part.write_text("1")
    search = trained(torch, tmp_path / "state")
    part.write_text("8")
    for _ in range(40):
        torch.step()
        search.step_done()
    assert (max(torch.counts), torch.count, search.most) == (8, 1, 1)


def test_a_part_that_nobody_tells_any_more_bounds_nothing(
    torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECON_CPUS_FILE", str(tmp_path / "gone"))
    follow_share()
    assert torch.count == 8


def test_a_number_that_the_user_chose_stays(torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    trained(torch, tmp_path)
    assert set(torch.counts) == {3}


def test_one_core_leaves_nothing_to_search(torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECON_CPUS", "0.4")
    assert trained(torch, tmp_path).most is None
    assert set(torch.counts) == {1}


@pytest.mark.usefixtures("torch")
def test_a_trial_searches_while_it_trains(torch: Torch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECON_TRIAL_ID", "s.a")
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path))
    with trial() as t:
        for _ in t.steps(40):
            torch.step()
    assert torch.counts[0] == 8
    assert torch.counts[-1] == 1
