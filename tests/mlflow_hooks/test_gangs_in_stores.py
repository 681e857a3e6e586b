"""Several workers that train one trial and share no disk, only a store of objects."""

import importlib.util
from pathlib import Path

import pytest

from mlflow_hooks.folder_objects import FolderObjects
from mlflow_hooks.meeting import FolderMeeting, MeetingPlace, StoreMeeting
from tests.mlflow_hooks.gang_runs import GangTrial
from tests.mlflow_hooks.object_servers import S3Server

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra")
STEPS = 30


@pytest.mark.slow
@pytest.mark.pytorch
@needs_torch
@pytest.mark.parametrize("store", ["folder", "s3", "mlflow"], indirect=True)
def test_a_gang_on_disks_of_its_own_grows_and_shrinks_and_makes_each_step_once(
    tmp_path: Path, store: dict[str, str]
) -> None:
    trial = GangTrial(tmp_path / "disks", own_disks=True, more={**store, "SPECON_POD_IP": "127.0.0.1"})
    for workers, step in ((1, "9"), (3, "18"), (2, "never")):
        ended = trial.attempt(workers, JOB_SIGNAL=f"{step}:SIGTERM", JOB_RANK=str(workers - 1))
        assert ended.codes == [0 if step == "never" else 75] * workers, ended.err
        assert len({out.get("weights") for out in ended.out}) == 1
    assert [step for step, _ in trial.history("loss")] == list(range(STEPS))
    assert [value for _, value in trial.history("workers")] == [1.0] * 10 + [3.0] * 9 + [2.0] * 11


@pytest.mark.slow
@pytest.mark.pytorch
@needs_torch
def test_a_gang_that_loses_a_worker_goes_on_from_what_the_store_holds(tmp_path: Path, s3_server: S3Server) -> None:
    more = {"SPECON_STATE_STORE": s3_server.address, **s3_server.environment, "SPECON_POD_IP": "127.0.0.1"}
    trial = GangTrial(tmp_path / "disks", own_disks=True, more=more)
    for codes, signal, rank in (([75, 75], "7:SIGTERM", "0"), ([76, -9], "15:SIGKILL", "1"), ([0, 0], "never", "0")):
        ended = trial.attempt(2, JOB_SIGNAL=signal, JOB_RANK=rank)
        assert ended.codes == codes, ended.err
    assert [step for step, _ in trial.history("loss")] == list(range(STEPS))


def places(tmp_path: Path, attempt: str) -> list[MeetingPlace]:
    store = FolderObjects(f"file://{tmp_path}/store")
    return [FolderMeeting(tmp_path / "s.a", attempt), StoreMeeting(store, "s.a", attempt)]


def test_workers_read_each_others_words_in_a_folder_as_in_a_store(tmp_path: Path) -> None:
    for place, other in zip(places(tmp_path, "a1"), places(tmp_path, "a1"), strict=True):
        assert place.names() == set()
        place.tell("here-0", "10.0.0.1:80")
        place.tell("here-0", "10.0.0.1:80")  # as after an answer that was lost
        assert other.names() == {"here-0"}
        assert other.word("here-0") == "10.0.0.1:80"


def test_words_of_earlier_attempts_are_neither_seen_nor_kept(tmp_path: Path) -> None:
    for old, new in zip(places(tmp_path, "a1"), places(tmp_path, "a2"), strict=True):
        old.tell("left-1", "")
        assert new.names() == set()
        new.tell("start.json", "{}")
        new.forget_others()
        assert (old.names(), new.names()) == (set(), {"start.json"})
