"""A symbolic link in a place that others may write to leads nobody out of it: nothing behind it is read or changed."""

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from controllers.core.errors import SpeconError
from controllers.core.labels import Keep
from controllers.local_run.run_folder import RunFolder
from controllers.record.lines import LineFile
from controllers.worlds.local.gangs import Meeting
from hera_specon.cli.main import main
from hera_specon.records.checkpoints_left import left_on, remove_here
from mlflow_hooks import contract
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.fence import Fence
from mlflow_hooks.folder_objects import FolderObjects
from mlflow_hooks.holder import Holder
from mlflow_hooks.journal import Journal
from mlflow_hooks.objects import StoreError
from mlflow_hooks.points import Point
from mlflow_hooks.settings import read_settings
from mlflow_hooks.state_folder import Ending, Identity, disk_is_full, write_ending, write_identity
from tests.cases.local_trials import LocalTrial
from tests.controllers.local_run.test_kept_checkpoints import UID, Over

SECRET = b"somebody else's"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Make a folder of somebody else's, with what a trial has."""
    for file in ("head.json", "weights", "checkpoints/step-00000008/weights"):
        path = tmp_path / "target" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SECRET)
    return tmp_path / "target"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "given"
    path.write_bytes(b"ours")
    return path


DEEDS: dict[str, Callable[[FolderObjects, str, Path], object]] = {
    "read": lambda store, trial, _: store.read(f"{trial}/head.json"),
    "write": lambda store, trial, _: store.write(f"{trial}/head.json", b"ours", None),
    "upload": lambda store, trial, given: store.upload(f"{trial}/weights", given),
    "download": lambda store, trial, given: store.download(f"{trial}/weights", given),
    "remove": lambda store, trial, _: store.remove([f"{trial}/weights"]),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_a_trials_folder_in_a_store_that_is_a_link_is_refused_by_name(
    deed: str, target: Path, given: Path, tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "s.t0").symlink_to(target)
    before = contents(target)
    with pytest.raises(StoreError, match=r"symbolic link.*s\.t0"):
        DEEDS[deed](FolderObjects(f"file://{tmp_path}/store"), "s.t0", given)
    assert (contents(target), given.read_bytes()) == (before, b"ours")


def test_the_lock_of_a_store_that_is_a_link_empties_nothing(target: Path, tmp_path: Path) -> None:
    (tmp_path / "store" / "s.t0").mkdir(parents=True)
    (tmp_path / "store" / "s.t0" / ".lock").symlink_to(target / "weights")
    with pytest.raises(StoreError, match=r"symbolic link.*\.lock"):
        FolderObjects(f"file://{tmp_path}/store").write("s.t0/head.json", b"ours", None)
    assert (target / "weights").read_bytes() == SECRET


@pytest.mark.parametrize("deed", ["read", "download"])
def test_an_object_that_is_a_link_or_a_pipe_is_not_opened(deed: str, target: Path, given: Path, tmp_path: Path) -> None:
    trial = tmp_path / "store" / "s.t0"
    trial.mkdir(parents=True)
    store = FolderObjects(f"file://{tmp_path}/store")
    for name in ("head.json", "weights"):
        (trial / name).symlink_to(target / name)
    with pytest.raises(StoreError, match="symbolic link"):
        DEEDS[deed](store, "s.t0", given)
    for name in ("head.json", "weights"):
        (trial / name).unlink()
        os.mkfifo(trial / name)
    with pytest.raises(StoreError, match="no ordinary file"):
        DEEDS[deed](store, "s.t0", given)
    assert given.read_bytes() == b"ours"


def test_a_store_lists_nothing_that_a_link_leads_to(target: Path, tmp_path: Path) -> None:
    store = FolderObjects(f"file://{tmp_path}/store")
    store.write("s.t0/head.json", b"ours", None)
    (tmp_path / "store" / "s.t1").symlink_to(target)
    (tmp_path / "store" / "s.t0" / "weights").symlink_to(target / "weights")
    assert [found.key for found in store.list("")] == ["s.t0/head.json"]
    with pytest.raises(StoreError, match=r"symbolic link.*s\.t1"):
        list(store.list("s.t1/"))


def test_the_address_of_a_store_may_lead_through_a_link_of_its_users(tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "large disk")
    store = FolderObjects(f"file://{tmp_path}/store")
    store.write("s.t0/head.json", b"ours", None)
    assert (tmp_path / "large disk" / "s.t0" / "head.json").read_bytes() == b"ours"


@pytest.fixture
def volume(tmp_path: Path, target: Path) -> Path:
    """Make a volume with a trial that has ended, and links beside it to somebody else's folder."""
    for name in ("s.t0", "s.t1"):
        folder = tmp_path / "volume" / name
        for step in (8, 12):
            (folder / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
            (folder / "checkpoints" / f"step-{step:08d}" / "weights").write_bytes(b"ours")
        write_identity(folder, Identity(name, name, "e", "s", None, {}))
        write_ending(folder, Ending.now("FINISHED"))
    (tmp_path / "volume" / "s.t0" / "checkpoints" / "step-00000008" / "best").symlink_to(target)
    (tmp_path / "volume" / "s.t0" / "checkpoints" / "step-00000008" / "gone").symlink_to("nowhere")
    (tmp_path / "volume" / "s.t0" / "checkpoints" / "step-00000004").symlink_to(target)
    return tmp_path / "volume"


def test_clean_removes_nothing_that_a_link_on_a_volume_leads_to(volume: Path, target: Path, tmp_path: Path) -> None:
    write_identity(target, Identity("s.t2", "s.t2", "e", "s", None, {}))
    write_ending(target, Ending.now("FINISHED"))
    (volume / "s.t2").symlink_to(target)
    shutil.rmtree(volume / "s.t1" / "checkpoints")
    (volume / "s.t1" / "checkpoints").symlink_to(target / "checkpoints")
    before = contents(target)
    done = CliRunner().invoke(main, ["clean", "--folder", str(volume), "--state-dir", str(tmp_path), "--yes"])
    assert (done.exit_code, contents(target)) == (0, before), done.output
    assert [path.name for path in (volume / "s.t0" / "checkpoints").iterdir()] == ["step-00000004"]


@pytest.mark.parametrize("linked", ["s.t1", "s.t1/checkpoints"])
def test_a_folder_that_becomes_a_link_before_it_is_removed_leads_to_nothing_that_is(
    linked: str, volume: Path, target: Path
) -> None:
    (leftover,) = left_on(volume, Keep.NONE, 0.0)
    shutil.rmtree(volume / linked)
    (volume / linked).symlink_to(target if linked == "s.t1" else target / "checkpoints")
    before = contents(target)
    with pytest.raises(OSError, match="symbolic link"):
        remove_here(leftover)
    assert contents(target) == before
    assert "checkpoints/step-00000008/weights" in before


@pytest.mark.parametrize("linked", ["trial", "checkpoints", "step"])
def test_what_a_sweep_need_not_keep_is_removed_where_it_is_and_not_behind_a_link(
    linked: str, target: Path, tmp_path: Path
) -> None:
    over = Over(tmp_path / "run", "none")
    trial = tmp_path / "run" / "state" / f"{UID}.s.t0"
    link = {"trial": trial, "checkpoints": trial / "checkpoints", "step": trial / "checkpoints" / "step-00000008"}
    leads_to = {"trial": target, "checkpoints": target / "checkpoints", "step": target / "checkpoints/step-00000008"}
    shutil.rmtree(link[linked])
    link[linked].symlink_to(leads_to[linked])
    before = contents(target)
    over.drop()
    assert contents(target) == before
    assert over.left["t1"] == []


def test_workers_meet_in_no_folder_behind_a_link(target: Path, tmp_path: Path) -> None:
    (target / "gang").mkdir()
    (target / "gang" / "words").write_bytes(SECRET)
    (tmp_path / "s.t0").symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"):
        Meeting(tmp_path / "s.t0", "token")
    assert (target / "gang" / "words").read_bytes() == SECRET


@pytest.mark.parametrize("linked", ["", "checkpoints", "points.jsonl", "owner"])
def test_hooks_train_in_no_folder_of_a_trial_that_a_link_leads_out_of(
    linked: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(contract.ENV_STATE_ROOT, str(tmp_path / "state"))
    monkeypatch.setenv(contract.ENV_TRIAL_ID, "s.t0")
    place = tmp_path / "state" / "s.t0" / linked
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target / "checkpoints" if linked in {"", "checkpoints"} else target / "weights")
    with pytest.raises(BadEnvironmentError, match=r"s\.t0.*is a symbolic link"):
        read_settings(None, None, None, 0.0)


def test_this_machine_starts_no_trial_whose_folder_is_a_link(target: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        trial = LocalTrial(tmp_path, stack).start(["true"])
        (tmp_path / "state").mkdir(exist_ok=True)
        (tmp_path / "state" / "uid.sweep.a").symlink_to(target)
        before = contents(target)
        with pytest.raises(SpeconError, match="is a symbolic link"):
            trial.drive(lambda: False)
        assert contents(target) == before


WRITES: dict[str, Callable[[Path], object]] = {
    "points.jsonl": lambda file: Journal(file.parent).append([Point("loss", 0.5, 0, 0)]),
    "points.lock": lambda file: ExitStack().enter_context(Fence(file.parent, -1).taken()),
    "holder.json": lambda file: Holder(file.parent, "a"),
    "lock": lambda file: RunFolder(file.parent, resumed=True).lock(),
    "actions.jsonl": lambda file: LineFile(file).append("ours\n"),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_file_of_a_run_that_becomes_a_link_is_not_written_through(name: str, target: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(target / "weights")
    with suppress(OSError, SpeconError):
        WRITES[name](tmp_path / "run" / name)
    assert (target / "weights").read_bytes() == SECRET


def test_what_a_file_is_written_beside_is_no_link_either(target: Path, tmp_path: Path) -> None:
    beside = f".ended.json.{os.getpid()}.{threading.get_ident()}"
    (tmp_path / beside).symlink_to(target / "weights")
    with suppress(OSError):
        write_ending(tmp_path, Ending.now("FINISHED"))
    (tmp_path / f".room.{os.getpid()}").symlink_to(target / "weights")
    disk_is_full(tmp_path)
    assert (target / "weights").read_bytes() == SECRET


def test_a_trials_log_that_became_a_link_takes_nothing(target: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        trial = LocalTrial(tmp_path, stack).start(["echo", "ours"])
        (tmp_path / "logs").mkdir(exist_ok=True)
        (tmp_path / "logs" / "uid.sweep.a.log").symlink_to(target / "weights")
        with pytest.raises(SpeconError, match="symbolic link"):
            trial.drive(lambda: False)
    assert (target / "weights").read_bytes() == SECRET
