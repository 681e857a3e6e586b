"""What every store of objects must do, and what a mirror makes of it."""

import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mlflow_hooks.bucket import Bucket
from mlflow_hooks.checkpoints import Checkpoints
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.folder_objects import FolderObjects
from mlflow_hooks.head import Head, StoredCheckpoint, StoredFile
from mlflow_hooks.journal import Journal, kept_bytes, mark_sent, read_unsent
from mlflow_hooks.mirror import Mirror, ReplacedError, drop_checkpoints
from mlflow_hooks.objects import ObjectStore, StaleVersionError, StoreError
from mlflow_hooks.points import Point
from mlflow_hooks.run_artifacts import RunArtifacts
from mlflow_hooks.store_address import open_store
from mlflow_hooks.tracking_server import RestServer
from tests.mlflow_hooks.more_object_servers import MORE, MoreObjects
from tests.mlflow_hooks.object_servers import S3Server, WithoutConditions, variables

if TYPE_CHECKING:
    from tests.mlflow_hooks.hook_jobs import Server

STORES = ["folder", "s3", "s3 that ignores conditions", "artifacts", *MORE]
WITH_CONDITIONS = ["folder", "s3", *MORE]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> ObjectStore:
    return made(request.param, request)


@pytest.fixture(params=WITH_CONDITIONS)
def conditional_store(request: pytest.FixtureRequest) -> ObjectStore:
    return made(request.param, request)


def made(kind: str, request: pytest.FixtureRequest) -> ObjectStore:
    place = request.getfixturevalue("tmp_path").name
    if kind == "folder":
        return FolderObjects(f"file://{request.getfixturevalue('tmp_path')}/{place}")
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    if kind == "artifacts":
        mlflow: Server = request.getfixturevalue("mlflow_server")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow.uri)
        server_of_runs = RestServer(mlflow.uri)
        run = server_of_runs.create_run("0", place, {})
        return RunArtifacts(lambda: server_of_runs.artifact_uri(run))
    if kind in MORE:
        more: MoreObjects = request.getfixturevalue(kind)
        for name, value in more.environment.items():
            monkeypatch.setenv(name, value)
        return Bucket(f"{more.address}/{place}")
    server: S3Server = request.getfixturevalue("s3_server")
    port = server.port
    if kind == "s3 that ignores conditions":
        before = WithoutConditions(server.port)
        request.addfinalizer(before.stop)
        port = before.port
    for name, value in variables(port).items():
        monkeypatch.setenv(name, value)
    return Bucket(f"{server.address}/{place}")


def test_an_object_is_read_as_it_was_written(store: ObjectStore) -> None:
    assert store.read("t/head") is None
    version = store.write("t/head", b"one", None)
    assert store.read("t/head") == (b"one", version)


def test_only_the_version_that_was_named_is_replaced(store: ObjectStore) -> None:
    first = store.write("t/head", b"one", None)
    second = store.write("t/head", b"two", first)
    for stale in (None, first):
        with pytest.raises(StaleVersionError):
            store.write("t/head", b"three", stale)
    assert store.read("t/head") == (b"two", second)


def test_one_of_eight_writers_that_come_at_once_wins(conditional_store: ObjectStore) -> None:
    store = conditional_store
    version = store.write("t/head", b"first", None)
    won: list[int] = []

    def write(number: int) -> None:
        try:
            store.write("t/head", str(number).encode(), version)
        except StaleVersionError:
            return
        won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    found = store.read("t/head")
    assert found is not None
    assert found[0] == str(won[0]).encode()


def test_a_large_object_comes_back_whole(store: ObjectStore, tmp_path: Path) -> None:
    data = bytes(range(256)) * 160_001  # 40 MB: several parts, the last of them short
    (tmp_path / "large").write_bytes(data)
    store.upload("t/a/large", tmp_path / "large")
    store.download("t/a/large", tmp_path / "back")
    assert hashlib.sha256((tmp_path / "back").read_bytes()).digest() == hashlib.sha256(data).digest()


def test_an_empty_object_comes_back(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    store.upload("t/empty", tmp_path / "empty")
    store.download("t/empty", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b""


def test_objects_are_listed_below_a_prefix_and_removed(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    for key in ("t/a/1", "t/a/2", "t/b/1", "u/a/1"):
        store.upload(key, tmp_path / "file")
    assert sorted((found.key, found.size) for found in store.list("t/")) == [("t/a/1", 5), ("t/a/2", 5), ("t/b/1", 5)]
    store.remove(["t/a/1", "t/b/1", "t/never"])
    assert [found.key for found in store.list("t/")] == ["t/a/2"]


def test_what_is_not_there_cannot_be_downloaded(store: ObjectStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        store.download("t/none", tmp_path / "back")


def test_a_store_that_ignores_conditions_is_found_out_and_told(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = WithoutConditions(s3_server.port)
    try:
        for name, value in variables(before.port).items():
            monkeypatch.setenv(name, value)
        store = Bucket(f"{s3_server.address}/ignoring")
        version = store.write("t/head", b"one", None)
        assert not store.conditional
        assert "ignores conditional writes" in capsys.readouterr().err
        store.write("t/head", b"two", version)
        with pytest.raises(StaleVersionError):  # the weaker way: it looks before it writes, and once more afterwards
            store.write("t/head", b"three", version)
        found = store.read("t/head")
        assert found is not None
        assert found[0] == b"two"
        assert [found.key for found in store.list(".specon-probe/")] == []
    finally:
        before.stop()


@pytest.mark.parametrize("address", ["/mnt/x", "ftp://x/y", "file://server/x", "mlflow:x"])
def test_what_is_no_store_is_refused_by_name(address: str) -> None:
    with pytest.raises(BadEnvironmentError, match=address):
        open_store(address)


# What follows is of one trial in a store.


class Attempt:
    """An attempt on a machine of its own."""

    def __init__(self, store: ObjectStore, folder: Path, token: str) -> None:
        self.folder = folder
        self.mirror = Mirror(store, folder, "s.a", token)
        self.mirror.take_over()
        folder.mkdir(exist_ok=True)
        (folder / "owner").write_text(token)
        self.journal = Journal(folder)
        self.checkpoints = Checkpoints(folder / "checkpoints")

    def log(self, *steps: int) -> None:
        self.journal.append([Point("loss", float(step), step, 0) for step in steps])

    def save(self, step: int, weights: bytes = b"") -> Path:
        def write(folder: Path) -> tuple[str, ...]:
            (folder / "model" / "deep").mkdir(parents=True)
            (folder / "model" / "deep" / "w").write_bytes(weights or str(step).encode())
            return ("model",)

        assert self.checkpoints.save(step, write, float(step), lambda: True)
        return self.folder / "checkpoints" / f"step-{step:08d}"

    @property
    def steps(self) -> list[int]:
        return [json.loads(line)["step"] for line in (self.folder / "points.jsonl").read_text().splitlines()]


def test_another_attempt_elsewhere_goes_on_with_points_and_checkpoint(store: ObjectStore, tmp_path: Path) -> None:
    first = Attempt(store, tmp_path / "1", "first")
    first.log(0, 1, 2)
    first.mirror.commit(first.save(2))
    first.log(3)
    first.mirror.commit()
    mark_sent(first.folder, 10)
    first.mirror.commit()
    second = Attempt(store, tmp_path / "2", "second")
    found = second.checkpoints.newest()
    assert found is not None
    assert (found.step, found.states) == (2, ("model",))
    assert (found.folder / "model" / "deep" / "w").read_bytes() == b"2"
    assert second.steps == [0, 1, 2, 3]
    assert (second.folder / "points.sent").read_text() == "10"
    assert not second.journal.is_new("loss", 3)


def test_mlflow_gets_no_point_that_the_store_does_not_hold(store: ObjectStore, tmp_path: Path) -> None:
    attempt = Attempt(store, tmp_path / "1", "first")
    attempt.log(0, 1)
    assert read_unsent(attempt.folder, 1000)[0] == []
    attempt.mirror.commit()
    attempt.log(2)
    assert [point.step for point in read_unsent(attempt.folder, 1000)[0]] == [0, 1]


def test_an_attempt_that_was_replaced_commits_nothing_more(store: ObjectStore, tmp_path: Path) -> None:
    first = Attempt(store, tmp_path / "1", "first")
    first.log(0)
    first.mirror.commit(first.save(1))
    second = Attempt(store, tmp_path / "2", "second")
    first.log(1, 2)
    with pytest.raises(ReplacedError):
        first.mirror.commit(first.save(3))
    assert [point.step for point in read_unsent(first.folder, 1000)[0]] == [0]
    second.log(1)
    second.mirror.commit(second.save(2))
    third = Attempt(store, tmp_path / "3", "third")
    found = third.checkpoints.newest()
    assert found is not None
    assert (found.step, third.steps) == (2, [0, 1])


def test_an_upload_that_was_cut_short_costs_nothing_and_leaves_nothing(store: ObjectStore, tmp_path: Path) -> None:
    first = Attempt(store, tmp_path / "1", "first")
    first.mirror.commit(first.save(1))
    (tmp_path / "half").write_bytes(b"half")
    store.upload("s.a/step-00000002/first-9/0", tmp_path / "half")
    second = Attempt(store, tmp_path / "2", "second")
    found = second.checkpoints.newest()
    assert found is not None
    assert found.step == 1
    assert not any("step-00000002" in left.key for left in store.list("s.a/"))


def test_the_newest_two_checkpoints_are_kept_and_a_broken_one_is_passed_over(
    store: ObjectStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Attempt(store, tmp_path / "1", "first")
    for step in (1, 2, 3):
        first.mirror.commit(first.save(step))
    files = [found.key for found in store.list("s.a/step-")]
    assert {key.split("/")[1] for key in files} == {"step-00000002", "step-00000003"}
    (tmp_path / "broken").write_bytes(b"broken")
    for key in files:
        if "step-00000003" in key:
            store.upload(key, tmp_path / "broken")
    second = Attempt(store, tmp_path / "2", "second")
    found = second.checkpoints.newest()
    assert found is not None
    assert found.step == 2
    assert "step 3 is broken" in capsys.readouterr().err
    second.mirror.commit(second.save(3, b"again"))
    third = Attempt(store, tmp_path / "3", "third")
    newest = third.checkpoints.newest()
    assert newest is not None
    assert (newest.folder / "model" / "deep" / "w").read_bytes() == b"again"


@pytest.mark.parametrize("keep", [0, 1])
def test_checkpoints_of_a_trial_that_is_over_go_but_for_the_newest_and_its_points_stay(
    store: ObjectStore, tmp_path: Path, keep: int
) -> None:
    first = Attempt(store, tmp_path / "1", "first")
    first.log(0, 1, 2)
    for step in (1, 2):
        first.mirror.commit(first.save(step))
    assert not drop_checkpoints(store, "s.a", "another", keep)
    assert not drop_checkpoints(store, "s.never", "first", keep)
    assert drop_checkpoints(store, "s.a", "first", keep)
    assert not drop_checkpoints(store, "s.a", "first", keep)
    left = {found.key.split("/")[1] for found in store.list("s.a/step-")}
    assert left == ({"step-00000002"} if keep else set())
    second = Attempt(store, tmp_path / "2", "second")
    found = second.checkpoints.newest()
    assert (None if found is None else found.step) == (2 if keep else None)
    assert second.steps == [0, 1, 2]


def test_a_process_that_begins_again_on_its_own_machine_keeps_what_it_has_there(
    store: ObjectStore, tmp_path: Path
) -> None:
    first = Attempt(store, tmp_path / "1", "first")
    first.log(0)
    first.mirror.commit(first.save(1))
    first.log(1, 2)  # not committed: the process was killed
    first.save(3)
    again = Attempt(store, tmp_path / "1", "first")
    found = again.checkpoints.newest()
    assert found is not None
    assert (found.step, again.steps) == (3, [0, 1, 2])
    assert [point.step for point in read_unsent(again.folder, 1000)[0]] == [0]


def test_a_long_journal_lies_in_parts_that_are_written_once(store: ObjectStore, tmp_path: Path) -> None:
    first = Attempt(store, tmp_path / "1", "first")
    for begin in range(0, 9000, 3000):
        first.log(*range(begin, begin + 3000))
        first.mirror.commit()
    first.log(9000)
    first.mirror.commit()
    assert len([*store.list("s.a/journal/")]) == 3
    second = Attempt(store, tmp_path / "2", "second")
    assert second.steps == list(range(9001))
    assert kept_bytes(second.folder) == (second.folder / "points.jsonl").stat().st_size


class Losing:
    """A store whose answer to the next write of a head is lost, though the head was written."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.lose = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def write(self, key: str, data: bytes, instead_of: object) -> object:
        version = self._store.write(key, data, instead_of)  # type: ignore[arg-type]  # handed on
        if self.lose:
            self.lose = False
            message = "it was changed meanwhile"  # as a request that a library sent twice
            raise StaleVersionError(message)
        return version


def test_a_commit_whose_answer_was_lost_is_known_as_its_own(store: ObjectStore, tmp_path: Path) -> None:
    losing = Losing(store)
    first = Attempt(losing, tmp_path / "1", "first")  # type: ignore[arg-type]  # hands on all the rest
    first.log(0)
    losing.lose = True
    first.mirror.commit()
    first.log(1)
    first.mirror.commit()
    assert Attempt(store, tmp_path / "2", "second").steps == [0, 1]


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", ""])
def test_a_head_that_names_files_elsewhere_is_refused(name: str) -> None:
    file = StoredFile("k", 1, "0")
    head = Head(checkpoints=(StoredCheckpoint(1, {name: file}),))
    with pytest.raises(StoreError, match="not one of ours"):
        Head.decode(head.encode())
    with pytest.raises(StoreError):
        Head.decode(Head(parts=(StoredFile(name, 1, "0"),)).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 2}', b"[" * 100_000])
def test_what_is_no_head_is_never_replaced(conditional_store: ObjectStore, tmp_path: Path, data: bytes) -> None:
    store = conditional_store
    store.write("s.a/head.json", data, None)
    with pytest.raises(StoreError):
        Attempt(store, tmp_path / "1", "first")
    found = store.read("s.a/head.json")
    assert found is not None
    assert found[0] == data


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3Server]:
    server = S3Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()
