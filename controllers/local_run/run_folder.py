"""Where a run keeps what it knows, and how a run that was cut short is found again."""

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from controllers.core.errors import SpeconError
from controllers.core.results import RunResult
from controllers.worlds.local.jobs import write_whole
from controllers.worlds.local.trusted_folders import OWN_MODE, make_private
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.no_links import open_file

_IDENTITY = "identity"
_SUFFIX = "uid_suffix"
_ORDER_FILE = "order.json"
RESULT_FILE = "result.json"
_DELIVERED = "delivered"


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run: ``run.json``, and for each policy a folder with timeline and result."""

    path: Path
    resumed: bool

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.name

    def uid(self, position: int) -> str:
        """Return what stands for the workflow's uid under the ``position``-th policy.

        It names trials in MLflow and control groups in the kernel, which runs of other folders share.
        """
        return f"{self.name}-{_described(self.path)[_SUFFIX]}-{position:02d}"

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Write ``facts`` into ``run.json`` beside those that are there."""
        known = _described(self.path)
        write_whole(self.path / "run.json", json.dumps({**known, **facts}, indent=1).encode())

    def of_policy(self, position: int, name: str) -> Path:
        """Return the folder of the ``position``-th policy (from 0), made if need be."""
        folder = self.path / f"{position:02d}-{name}"
        make_private(folder)
        return folder

    def keep_order(self, order: Mapping[str, Any]) -> None:
        """Keep what was asked for (JSON), so that the run can be gone on with without it."""
        write_whole(self.path / _ORDER_FILE, json.dumps(order, indent=1).encode())

    def order(self) -> dict[str, Any]:
        """Return what was asked for.

        Raises:
            SpeconError: that was not kept.
        """
        try:
            kept: dict[str, Any] = parsed((self.path / _ORDER_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            message = f"run {self.name} does not tell what it was asked for: {_ORDER_FILE} cannot be read ({error})"
            raise SpeconError(message) from error
        return kept

    @property
    def finished(self) -> bool:
        """Whether it has run under each of its policies."""
        return bool(_described(self.path).get("finished"))

    def reopen(self, identity: Mapping[str, Any]) -> None:
        """Take note that more was asked for: an interrupted run is found again by all that it was asked for."""
        self.describe({_IDENTITY: _digest(identity), "finished": False})

    def lock(self) -> IO[str]:
        """Keep other controllers out of this run until the returned file is closed.

        Raises:
            SpeconError: another controller drives it now.
        """
        file = os.fdopen(open_file(self.path / "lock", os.O_WRONLY | os.O_CREAT), "w", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            message = f"run {self.name} is being driven by another specon process"
            raise SpeconError(message) from error
        os.set_inheritable(file.fileno(), False)  # noqa: FBT003 - its only argument
        return file


def find_or_make_run(state_dir: Path, sweep: str, identity: Mapping[str, Any], *, fresh: bool) -> RunFolder:
    """Return the newest unfinished run of the same identity, or a new one.

    Args:
        state_dir: folder that holds ``runs/``.
        sweep: what the run is named after.
        identity: all that makes two commands the same (JSON).
        fresh: start a new run, even where an unfinished one is.

    Raises:
        OSError: the disk takes none.
    """
    runs = state_dir / "runs"
    make_private(runs)
    if not fresh and (unfinished := unfinished_run(state_dir, sweep, identity)):
        return unfinished
    number = max((_number(path) for path in runs.glob(f"{sweep}-*")), default=0) + 1
    path = runs / f"{sweep}-{number}"
    path.mkdir(OWN_MODE)
    folder = RunFolder(path, resumed=False)
    about = {_IDENTITY: _digest(identity), "name": path.name, "sweep": sweep, _SUFFIX: uuid.uuid4().hex[:8]}
    try:
        folder.describe(about)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)  # nobody would ever find it again
        raise
    return folder


def unfinished_run(state_dir: Path, sweep: str, identity: Mapping[str, Any]) -> RunFolder | None:
    """Return the newest unfinished run of the same identity; the arguments are those of ``find_or_make_run``."""
    for path in sorted((state_dir / "runs").glob(f"{sweep}-*"), key=_number, reverse=True):
        folder = RunFolder(path, resumed=True)
        if _described(path).get(_IDENTITY) == _digest(identity) and not folder.finished:
            return folder
    return None


def newest_run(state_dir: Path, sweep: str) -> RunFolder | None:
    """Return the newest run of that name, whatever it was asked for; None where there is none.

    Args:
        state_dir: folder that holds ``runs/``.
        sweep: what the run is named after.
    """
    paths = [path for path in (state_dir / "runs").glob(f"{sweep}-*") if path.name.removeprefix(f"{sweep}-").isdigit()]
    return RunFolder(max(paths, key=_number), resumed=True) if paths else None


def find_run_of_sweep(state_dir: Path, sweep: str, identity: Mapping[str, Any]) -> tuple[RunFolder, list[str]]:
    """Return the newest run that was asked for the same but for its policies, and these.

    Args:
        state_dir: folder that holds ``runs/``.
        sweep: what the run is named after.
        identity: all that makes two commands the same (JSON).

    Raises:
        SpeconError: there is none.
    """
    return _find_alike(state_dir, sweep, identity, {"policies"})


def find_smaller_run(state_dir: Path, sweep: str, identity: Mapping[str, Any]) -> tuple[RunFolder, list[str]]:
    """Return the newest run of the sweep on the same nodes, whatever its trials, and the policies that it ran under.

    Args:
        state_dir: folder that holds ``runs/``.
        sweep: what the run is named after.
        identity: all that makes two commands the same (JSON).

    Raises:
        SpeconError: there is none.
    """
    return _find_alike(state_dir, sweep, identity, {"policies", "workflow"})


def _find_alike(
    state_dir: Path, sweep: str, identity: Mapping[str, Any], but_for: set[str]
) -> tuple[RunFolder, list[str]]:
    open_ones = dict.fromkeys(but_for)
    wanted = _digest({**identity, **open_ones})
    for path in sorted((state_dir / "runs").glob(f"{sweep}-*"), key=_number, reverse=True):
        folder = RunFolder(path, resumed=True)
        try:
            kept = folder.order()
        except SpeconError:
            continue  # begun by an older version, or not begun at all
        if _digest({**{name: kept.get(name) for name in identity}, **open_ones}) == wanted:
            return folder, list(kept["policies"])
    same = "" if "workflow" in but_for else "sweep, "
    message = (
        f"no run in {state_dir / 'runs'} of {sweep!r} has the same {same}nodes, cores, seed and parameters: "
        "give the options that it was begun with, or begin one with --policy"
    )
    raise SpeconError(message)


def read_result(folder: Path) -> RunResult | None:
    """Return the result in a policy's folder, None while it has none."""
    path = folder / RESULT_FILE
    return RunResult.from_dict(parsed(path.read_text(encoding="utf-8"))) if path.exists() else None


def write_result(folder: Path, result: RunResult, *, delivered: bool) -> None:
    """Keep a result in a policy's folder, and whether MLflow has all of it by now."""
    kept = {**result.to_dict(), _DELIVERED: delivered}
    write_whole(folder / RESULT_FILE, json.dumps(kept, indent=1).encode())


def is_delivered(folder: Path) -> bool:
    """Return whether MLflow is known to have all of the run in a policy's folder; older versions did not note that."""
    try:
        return bool(parsed((folder / RESULT_FILE).read_text(encoding="utf-8")).get(_DELIVERED))
    except FileNotFoundError:
        return False


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _described(path: Path) -> dict[str, Any]:
    described = path / "run.json"
    try:
        facts: dict[str, Any] = parsed(described.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return facts


def _number(path: Path) -> int:
    tail = path.name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0
