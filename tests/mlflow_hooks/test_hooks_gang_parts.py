"""Who is in a gang, how its workers wait for each other, and sums that do not depend on how they are grouped."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_hooks import BadEnvironmentError, GangError, MigrationExit, checkpoints, contract, gang, meeting, trial
from mlflow_hooks.data_parallel import on_grid
from mlflow_hooks.gang import Gang
from mlflow_hooks.settings import read_settings
from tests.mlflow_hooks.hook_jobs import JOBS, job_environment

FULL = {"SPECON_TRIAL_ID": "s.a", "SPECON_ATTEMPT": "a1", "RANK": "1", "WORLD_SIZE": "3", "SPECON_WORKERS_MAX": "4"}


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Return a way to change the environment of the second of three workers."""
    for name, value in {**FULL, "SPECON_STATE_ROOT": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("RANK", "3", "with the rank below the others, not 3, 3, 4"),
        ("RANK", "", "RANK is not set, but WORLD_SIZE is 3"),
        ("RANK", "-1", "RANK must be a whole number from 0, not '-1'"),
        ("WORLD_SIZE", "two", "WORLD_SIZE must be a whole number from 1, not 'two'"),
        ("WORLD_SIZE", "5", "with the rank below the others, not 1, 5, 4"),
        ("SPECON_WORKERS_MAX", "0", "SPECON_WORKERS_MAX must be a whole number from 1, not '0'"),
        ("SPECON_ATTEMPT", "", "WORLD_SIZE is 3, but SPECON_ATTEMPT not set"),
    ],
)
def test_a_place_that_cannot_be_is_refused_by_name(full: pytest.MonkeyPatch, name: str, value: str, why: str) -> None:
    full.setenv(name, value)
    with pytest.raises(BadEnvironmentError, match=why):
        trial()


def worker(*, asked: bool = False) -> Gang:
    """Return the worker that the environment names, which was asked to leave or not."""
    settings = read_settings(None, None, None, 1.0)
    place = meeting.FolderMeeting(settings.folder, settings.attempt)
    return Gang(settings, place, lambda: asked, lambda: 0.0, lambda: 0.0)


def test_a_worker_that_waits_in_vain_names_who_is_missing(
    full: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full.setattr(gang, "MEET_S", 0.1)
    with pytest.raises(MigrationExit):
        worker().roll_call("here")
    assert "waited 0.1 s for worker 0, 2 of 0 to 2: was it started" in capsys.readouterr().err


def test_whoever_waits_leaves_as_soon_as_another_worker_has_left(
    full: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = worker(asked=True)
    full.setenv("RANK", "2")
    waiting = worker()
    for each in (asked, waiting):
        with pytest.raises(MigrationExit):
            each.roll_call("here")
    assert "worker 1 of 0 to 2 left before training began" in capsys.readouterr().err


def test_a_script_that_never_joins_its_gang_is_told_how(full: pytest.MonkeyPatch) -> None:
    full.setenv("RANK", "0")
    with trial() as t, pytest.raises(GangError, match=r"one of 3 workers, .* call data_parallel\(t, ...\)"):
        t.begin(3)


def test_nothing_is_waited_for_where_a_trial_has_one_worker_now(full: pytest.MonkeyPatch) -> None:
    full.setenv("RANK", "0")
    full.setenv("WORLD_SIZE", "1")
    with trial() as t:
        assert list(t.steps(3)) == [0, 1, 2]
        assert t.gang.exchange([2.5]) == [2.5]
    assert not t.gang.local_folder.exists()


def test_rank_0_clears_away_where_earlier_attempts_have_met(full: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "s.a/gang/a0").mkdir(parents=True)
    full.setenv("RANK", "0")
    with trial():
        assert [path.name for path in (tmp_path / "s.a/gang").iterdir()] == ["a1"]


def broken(*_: object) -> NoReturn:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_rank_0_leaves_it_to_the_next_attempt_if_the_disk_keeps_it_from_telling_the_others(
    full: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full.setenv("RANK", "0")
    full.setattr(meeting, "write_whole", broken)
    with pytest.raises(MigrationExit):
        trial()
    assert "cannot tell the other workers" in capsys.readouterr().err


class Weights:
    """A state that is one file."""

    def save(self, folder: Path) -> None:
        (folder / "weights").write_text("1")

    def load(self, folder: Path) -> None:
        (folder / "weights").read_text()


@pytest.mark.parametrize(
    ("owner", "reads"), [(checkpoints, "_sha256"), (Weights, "load")], ids=["to check it", "to take it back"]
)
def test_a_worker_that_cannot_read_the_checkpoint_tells_the_others_that_it_leaves(
    full: pytest.MonkeyPatch, owner: object, reads: str
) -> None:
    full.setenv("RANK", "0")
    full.setenv("WORLD_SIZE", "1")
    with trial() as t:
        t.track(Weights())
        list(t.steps(1))
    full.setenv("WORLD_SIZE", "3")
    full.setenv(contract.ENV_ATTEMPT, "the next")
    trial()  # rank 0, as long as this worker needs it
    full.setenv("RANK", "1")
    full.setattr(owner, reads, broken)
    with pytest.raises(MigrationExit):
        trial().track(Weights())
    assert "left-1" in worker().meeting.names()


floats = st.floats(-1e6, 1e6, width=32)


@pytest.mark.pytorch
@given(values=st.lists(st.lists(floats, min_size=3, max_size=3), min_size=2, max_size=9), data=st.data())
def test_what_is_on_the_grid_adds_up_to_the_same_bits_in_any_order(
    values: list[list[float]], data: st.DataObject
) -> None:
    torch = pytest.importorskip("torch")
    parts = torch.tensor(values, dtype=torch.float32)
    top = parts.abs().max().item()
    terms = [on_grid(part, top, len(values)) for part in parts]
    cut = data.draw(st.integers(1, len(values) - 1))
    order = data.draw(st.permutations(terms))
    in_turn = sum(terms[1:], terms[0])
    grouped = sum(order[1:cut], order[0]) + sum(order[cut + 1 :], order[cut])
    assert torch.equal(in_turn, grouped)
    assert torch.allclose(in_turn, parts.double().sum(0), rtol=0, atol=top * 1e-12)


@pytest.mark.pytorch
@pytest.mark.slow
def test_torchrun_by_hand_trains_one_trial_on_its_workers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    environment = job_environment("", tmp_path, {"JOB_STEPS": "10"})
    del environment["SPECON_TRIAL_ID"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(JOBS / "gang_job.py")], env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("gang_job-torchrun-")
    assert (folder / "points.jsonl").read_text().count('"key": "loss"') == 10
