"""Checkpoints that sweeps left behind, and what of them may go. MLflow's runs are never among them."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from controllers.core.labels import Keep
from controllers.local_run.kept_checkpoints import checkpoints_in, remove_checkpoint
from controllers.local_run.run_folder import RunFolder, read_result
from hera_specon.formatting import natural
from hera_specon.records.run_folder import parts_of
from mlflow_hooks.head import Head
from mlflow_hooks.no_links import entries_below, files_below, folder_below
from mlflow_hooks.objects import ObjectInfo, ObjectStore, StoreError
from mlflow_hooks.state_folder import ENDED, read_ending, read_identity

_HEAD = "head.json"
_OURS = re.compile(r"head\.json(/|$)|step-\d{8,}/|journal/\d{6,}-|gang/")


@dataclass(frozen=True, slots=True)
class Leftover:
    """What may go of one sweep under one policy: ``places`` are folders on this machine, or keys in a store.

    ``age_s`` is for how many seconds nothing of it was written; ``size`` is in bytes. ``unended`` are the trials that
    never said that they had ended: they died, or still wait.
    """

    sweep: str
    policy: str
    trials: int
    places: tuple[str, ...]
    size: int
    age_s: float
    unended: int = 0


def left_here(folders: Sequence[Path], keep: Keep, older_s: float) -> Iterator[Leftover]:
    """Yield what may go of the runs in ``folders``, which are over and older than so many seconds."""
    for folder in folders:
        if not RunFolder(folder, resumed=True).finished:
            continue
        for part in parts_of(folder):
            going = [path for path in _checkpoints(part) if path not in _staying(part, keep)]
            age_s = time.time() - max((path.stat().st_mtime for path in going), default=time.time())
            if going and age_s >= older_s:
                result = read_result(part)
                policy = part.name.partition("-")[2] if result is None else result.policy
                trials, size = len({path.parent for path in going}), sum(map(_size, going))
                yield Leftover(folder.name, policy, trials, tuple(map(str, going)), size, age_s)


def remove_here(leftover: Leftover) -> None:
    """Remove checkpoints on this machine.

    Raises:
        OSError: one cannot be removed; those before it are gone.
    """
    for place in leftover.places:
        remove_checkpoint(Path(place))


def left_on(volume: Path, keep: Keep, older_s: float, *, dead: bool = False) -> Iterator[Leftover]:
    """Yield what may go of each sweep whose trials have all ended, on a volume on which a cluster's trials keep theirs.

    Which trial is the best, a volume does not tell: with ``Keep.BEST`` the newest of each stays. ``dead`` sweeps count
    as well: some of their trials never ended, and nothing was written for ``older_s``.
    """
    trials = sorted(path.parent for path in volume.glob("*/checkpoints") if _is_trial(path.parent))
    sweeps: dict[str, list[Path]] = defaultdict(list)
    for trial in trials:
        sweeps[trial.name.rpartition(".")[0] or trial.name].append(trial)
    for sweep, members in sorted(sweeps.items()):
        unended = sum(not read_ending(trial) for trial in members)
        if unended and not dead:
            continue
        there = [checkpoints_in(trial) for trial in members]
        going = [path for paths in there for path in (paths if keep is Keep.NONE else paths[:-1])]
        # Of all that a trial writes: one that lives may make no checkpoint for long.
        age_s = time.time() - max(map(_written_last, members))
        if going and age_s >= older_s:
            yield Leftover(sweep, "", len(members), tuple(map(str, going)), sum(map(_size, going)), age_s, unended)


def left_in(store: ObjectStore, older_s: float, *, dead: bool = False) -> Iterator[Leftover]:
    """Yield each sweep whose trials have all ended, and whose newest object in ``store`` is older than that.

    ``dead`` sweeps count as well: some of their trials never ended.

    Raises:
        StoreError: the store is away, or does not let itself be read.
    """
    trials: dict[str, list[ObjectInfo]] = defaultdict(list)
    for stored in store.list(""):
        trial, _, rest = stored.key.partition("/")
        # Whatever else lies below the same address is not ours to remove.
        if _OURS.match(rest):
            trials[trial].append(stored)
    sweeps: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        sweeps[trial.rpartition(".")[0] or trial].append(trial)
    for sweep, members in sorted(sweeps.items()):
        objects = [stored for trial in members for stored in trials[trial]]
        age_s = time.time() - max(stored.written_at.timestamp() for stored in objects)
        if age_s < older_s:
            continue
        unended = sum(not _ended(store, trial) for trial in members)
        if unended and not dead:
            continue
        # The heads go first: where this is broken off, nobody finds half of a checkpoint.
        keys = sorted((stored.key for stored in objects), key=lambda key: (f"/{_HEAD}" not in key, key))
        size = sum(stored.size for stored in objects)
        yield Leftover(sweep, "", len(members), tuple(keys), size, age_s, unended)


def _ended(store: ObjectStore, trial: str) -> bool:
    head = store.read(f"{trial}/{_HEAD}")
    if head is None:
        return True  # what a broken-off removal left
    try:
        return ENDED in Head.decode(head[0]).notes
    except StoreError:
        return False


def _checkpoints(part: Path) -> list[Path]:
    return [path for trial in sorted((part / "state").glob("*")) for path in checkpoints_in(trial)]


def _staying(part: Path, keep: Keep) -> frozenset[Path]:
    """Return the checkpoints of one policy's folder that stay."""
    newest: dict[str, Path] = {}
    for path in sorted(_checkpoints(part), key=lambda path: natural(path.name)):
        newest[path.parent.parent.name] = path
    if keep is Keep.NONE:
        return frozenset()
    if keep is Keep.NEWEST:
        return frozenset(newest.values())
    result = read_result(part)
    best = {name for names in result.best().values() for name in names} if result else set[str]()
    return frozenset(path for trial, path in newest.items() if any(trial.endswith(f".{name}") for name in best))


def _is_trial(folder: Path) -> bool:
    """Return whether a folder of a volume is that of a trial; others may have put links there that lead elsewhere."""
    return not folder.is_symlink() and read_identity(folder) is not None


def _size(folder: Path) -> int:
    with folder_below(folder, ()) as handle:
        return sum(about.st_size for _, about in files_below(handle))


def _written_last(folder: Path) -> float:
    """Return when anything in a folder was written last, in seconds since 1970."""
    with folder_below(folder, ()) as handle:
        return max([folder.stat().st_mtime, *(about.st_mtime for _, about in entries_below(handle))])
