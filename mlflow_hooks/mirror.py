"""A trial's state folder in a store of objects, for attempts that share no disk.

An attempt first takes the trial over: it brings the folder up to what the store holds, and writes its own token into
the head. From then on each commit replaces the head that this attempt wrote last. Where another attempt has taken over,
that fails, however late the other came to know of it: so the older one writes nothing more, neither here nor to MLflow,
which gets only points that a head holds.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from mlflow_hooks.checkpoints import KEPT, MANIFEST
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.head import Head, StoredCheckpoint, StoredFile
from mlflow_hooks.interruption import OWNER
from mlflow_hooks.journal import POINTS, SENT, mark_kept
from mlflow_hooks.meeting import GANG
from mlflow_hooks.objects import ObjectStore, StaleVersionError, StoreError, Version
from mlflow_hooks.state_folder import ENDED, IDENTITY, RUN, report, write_whole

_HEAD: Final = "head.json"
_CHECKPOINTS: Final = "checkpoints"
_MOST_TAIL: Final = 128 * 2**10
"""Bytes of the journal that the head holds itself; more go into an object of their own, which never changes."""
_TRIES: Final = 20
_UPLOADING: Final = ".uploading-"
_NOTES: Final = (IDENTITY, RUN, ENDED, SENT)


class ReplacedError(StoreError):
    """Another attempt has taken the trial over."""


class Mirror:
    """The state of one trial in a store, for one attempt.

    Args:
        store: of objects.
        folder: the trial's state folder on this machine.
        trial: the trial's id, below which all its objects lie.
        attempt: the token of the attempt.
    """

    def __init__(self, store: ObjectStore, folder: Path, trial: str, attempt: str) -> None:
        self._store = store
        self._folder = folder
        self._trial = trial
        self._attempt = attempt
        self._head = Head()
        self._version: Version | None = None

    def take_over(self) -> None:
        """Bring the folder up to what the store holds, and own the trial from then on.

        Raises:
            StoreError: the store is away, or holds something else; nothing was taken over.
            OSError: the disk of this machine fails.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        for _ in range(_TRIES):
            self._read()
            if self._head.attempt and self._owner() != self._head.attempt:
                self._bring_here()
            try:
                self._write(replace(self._head, attempt=self._attempt))
            except StaleVersionError:
                continue  # The attempt before was just writing, or a third takes over: again, from what is there.
            self._mark_kept()
            self._remove_strays()
            return
        message = f"{self._trial} changes again and again: more than one attempt takes it over"
        raise StoreError(message)

    def bring_checkpoint(self, step: int) -> None:
        """Bring the checkpoint of one step, for a worker that does not own the trial.

        Raises:
            StoreError: the store is away, or does not hold it.
        """
        self._read()
        for checkpoint in self._head.checkpoints:
            if checkpoint.step == step:
                # Rank 0 may share the folder, and has it then.
                if not self._is_here(checkpoint):
                    self._bring_checkpoint(checkpoint)
                return
        message = f"the store holds no checkpoint of {self._trial} at step {step}"
        raise StoreError(message)

    def holds(self, checkpoint: Path) -> bool:
        """Return whether the store holds the checkpoint of a folder."""
        return any(kept.name == checkpoint.name for kept in self._head.checkpoints)

    def commit(self, checkpoint: Path | None = None) -> None:
        """Keep the points so far, the small files, and a checkpoint's folder if one is given.

        Raises:
            ReplacedError: another attempt owns the trial by now.
            StoreError: the store is away; nothing was committed. Call again.
        """
        head = self._head
        kept = self._stored(checkpoint) if checkpoint is not None else None
        # After the checkpoint: every point before it is in the journal by then.
        parts, tail = self._journal(head)
        checkpoints = head.checkpoints
        if kept is not None:
            checkpoints = (kept, *(old for old in checkpoints if old.step < kept.step))[:KEPT]
        new = replace(head, parts=parts, tail=tail, checkpoints=checkpoints, notes=self._notes())
        if new == head:
            return
        try:
            self._write(new)
        except StaleVersionError as error:
            self._settle(new, error)
        self._mark_kept()
        self._remove_unnamed(head)

    def _read(self) -> None:
        found = self._store.read(f"{self._trial}/{_HEAD}")
        self._head, self._version = (Head(), None) if found is None else (Head.decode(found[0]), found[1])

    def _write(self, head: Head) -> None:
        head = replace(head, serial=self._head.serial + 1)
        self._version = self._store.write(f"{self._trial}/{_HEAD}", head.encode(), self._version)
        self._head = head

    def _settle(self, wanted: Head, error: StaleVersionError) -> None:
        """Find out who wrote the head: it may be this attempt, by a request whose answer was lost.

        Raises:
            ReplacedError: it was another attempt.
        """
        self._read()
        if self._head.attempt != self._attempt:
            message = f"another attempt has taken over {self._trial}"
            raise ReplacedError(message) from error
        if self._head != replace(wanted, serial=self._head.serial):
            raise error

    def _owner(self) -> str:
        try:
            return (self._folder / OWNER).read_text()
        except OSError:
            return ""

    def _bring_here(self) -> None:
        """Put what the head names in place of the folder, whose last attempt did not write that head.

        The owner's file goes first: until another is written, this is done again.
        """
        (self._folder / OWNER).unlink(missing_ok=True)
        for name in (POINTS, *_NOTES):
            (self._folder / name).unlink(missing_ok=True)
        shutil.rmtree(self._folder / _CHECKPOINTS, ignore_errors=True)
        with _beside(self._folder / POINTS) as journal, journal.open("wb") as lines:
            for part in self._head.parts:
                self._download(part, journal.with_suffix(".part"))
                lines.write(journal.with_suffix(".part").read_bytes())
                journal.with_suffix(".part").unlink()
            lines.write(self._head.tail.encode())
        for name, text in self._head.notes.items():
            if name in _NOTES:
                write_whole(self._folder / name, text)
        whole = self._head.checkpoints
        while whole:
            try:
                self._bring_checkpoint(whole[0])
            except BrokenObjectError as error:
                report(f"the checkpoint at step {whole[0].step} is broken ({error}); looking for the one before")
                whole = whole[1:]
            else:
                break
        self._head = replace(self._head, checkpoints=whole)

    def _bring_checkpoint(self, checkpoint: StoredCheckpoint) -> None:
        with _beside(self._folder / _CHECKPOINTS / checkpoint.name) as beside:
            for name, file in checkpoint.files.items():
                (beside / name).parent.mkdir(parents=True, exist_ok=True)
                self._download(file, beside / name)

    def _is_here(self, checkpoint: StoredCheckpoint) -> bool:
        try:
            return (
                _sha256(self._folder / _CHECKPOINTS / checkpoint.name / MANIFEST) == checkpoint.files[MANIFEST].sha256
            )
        except (OSError, KeyError):
            return False

    def _download(self, file: StoredFile, path: Path) -> None:
        self._store.download(f"{self._trial}/{file.key}", path)
        if _sha256(path) != file.sha256:
            message = f"{file.key} is not what was saved"
            raise BrokenObjectError(message)

    def _stored(self, folder: Path) -> StoredCheckpoint | None:
        """Upload a checkpoint's files; None where it is gone, as a later one has taken its place."""
        beside = folder.with_name(f"{_UPLOADING}{folder.name}")
        shutil.rmtree(beside, ignore_errors=True)
        try:
            shutil.copytree(folder, beside, copy_function=os.link)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)
            return None
        try:
            manifest = parsed((beside / MANIFEST).read_text())
            sums = {**manifest["sha256"], MANIFEST: _sha256(beside / MANIFEST)}
            place = f"{folder.name}/{self._attempt[:64]}-{self._head.serial}"
            files = {}
            for number, (name, sha256) in enumerate(sums.items()):
                file = files[name] = StoredFile(f"{place}/{number}", (beside / name).stat().st_size, sha256)
                self._store.upload(f"{self._trial}/{file.key}", beside / name)
            return StoredCheckpoint(int(manifest["step"]), files)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _journal(self, head: Head) -> tuple[tuple[StoredFile, ...], str]:
        """Return where the whole journal is: in objects, and what is beyond; an object may be added for it."""
        try:
            with (self._folder / POINTS).open("rb") as lines:
                lines.seek(sum(part.size for part in head.parts))
                rest = lines.read()
        except FileNotFoundError:
            rest = b""
        rest = rest[: rest.rfind(b"\n") + 1]
        if len(rest) <= _MOST_TAIL:
            return head.parts, rest.decode("utf-8", "replace")
        key = f"journal/{len(head.parts):06d}-{self._attempt[:64]}-{head.serial}"
        with _beside(self._folder / f"{_UPLOADING}points") as beside:
            beside.write_bytes(rest)
            self._store.upload(f"{self._trial}/{key}", beside)
        (self._folder / f"{_UPLOADING}points").unlink(missing_ok=True)
        return (*head.parts, StoredFile(key, len(rest), hashlib.sha256(rest).hexdigest())), ""

    def _notes(self) -> dict[str, str]:
        notes = {}
        for name in _NOTES:
            with suppress(OSError, UnicodeDecodeError):
                notes[name] = (self._folder / name).read_text()
        return notes

    def _mark_kept(self) -> None:
        mark_kept(self._folder, sum(part.size for part in self._head.parts) + len(self._head.tail.encode()))

    def _remove_unnamed(self, before: Head) -> None:
        """Remove what the head before named and this one does not; else the next attempt does."""
        gone = _keys(before) - _keys(self._head)
        with suppress(StoreError):
            self._store.remove(f"{self._trial}/{key}" for key in gone)

    def _remove_strays(self) -> None:
        """Remove what attempts left that were killed during an upload.

        An attempt that takes over later begins to upload after that. So what was there before we still owned the trial
        is none of its.
        """
        named = {f"{self._trial}/{key}" for key in _keys(self._head)}
        with suppress(StoreError):
            everything = (found.key for found in self._store.list(f"{self._trial}/"))
            # A store without versions keeps those of the head beside it, and workers of a gang meet there.
            not_ours = (f"{self._trial}/{_HEAD}", f"{self._trial}/{GANG}/")
            there = [key for key in everything if not key.startswith(not_ours)]
            still = self._store.read(f"{self._trial}/{_HEAD}")
            if still is not None and still[1] == self._version:
                self._store.remove(key for key in there if key not in named)


def drop_checkpoints(store: ObjectStore, trial: str, owner: str, keep: int) -> bool:
    """Remove the checkpoints of a trial that is over from a store, all but the newest ``keep``.

    Nothing is removed where another attempt than ``owner`` has the trial by now: it goes on elsewhere.

    Returns:
        Whether any was removed.

    Raises:
        StoreError: the store is away; call again.
    """
    found = store.read(f"{trial}/{_HEAD}")
    if found is None:
        return False
    head = Head.decode(found[0])
    kept = replace(head, checkpoints=head.checkpoints[:keep], serial=head.serial + 1)
    if head.attempt != owner or kept.checkpoints == head.checkpoints:
        return False
    try:
        store.write(f"{trial}/{_HEAD}", kept.encode(), found[1])
    except StaleVersionError:
        return False
    # No head names them any more. What a killed process leaves of them, the next attempt of the trial removes.
    store.remove(f"{trial}/{key}" for key in _keys(head) - _keys(kept))
    return True


class BrokenObjectError(StoreError):
    """An object that does not hold what was written."""


def _keys(head: Head) -> set[str]:
    of_checkpoints = {file.key for checkpoint in head.checkpoints for file in checkpoint.files.values()}
    return of_checkpoints | {part.key for part in head.parts}


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Give a place to write a file or a folder that takes the place of ``path`` at the end."""
    beside = path.with_name(f".writing-{path.name}-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield beside
        shutil.rmtree(path, ignore_errors=True)
        beside.replace(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
