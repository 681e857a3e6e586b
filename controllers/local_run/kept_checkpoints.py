"""What stays of the checkpoints of a sweep that is over on this machine, in folders and in stores, as ``keep=`` says.

All of it may be interrupted and done again: what was removed is not found the next time.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controllers.core import labels
from controllers.core.labels import Keep
from controllers.core.model import Phase
from controllers.core.results import RunResult
from controllers.worlds.local.jobs import JobLedger, LocalJob
from mlflow_hooks import contract
from mlflow_hooks.checkpoints import CHECKPOINTS
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.foreign_files import small_text
from mlflow_hooks.interruption import OWNER
from mlflow_hooks.mirror import drop_checkpoints
from mlflow_hooks.no_links import folder_below, remove_tree
from mlflow_hooks.objects import StoreError
from mlflow_hooks.run_artifacts import ADDRESS as RUN_ARTIFACTS
from mlflow_hooks.store_address import open_store

_MOST_ERROR: Final = 200


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A trial that is over: its job, and whether its newest checkpoint stays."""

    job: LocalJob
    keep: Keep
    newest_stays: bool

    @property
    def store(self) -> str:
        """Address of the store that has its checkpoints, too; empty for none."""
        address = self.job.step.env.get(contract.ENV_STATE_STORE, "")
        return "" if address == RUN_ARTIFACTS else address  # where a sweep runs here, that is not used


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints in a trial's state folder, the oldest first; none where a link stands on the way."""
    try:
        with folder_below(folder.parent, (folder.name, CHECKPOINTS)) as there, os.scandir(there) as entries:
            names = [one.name for one in entries if one.name.startswith("step-") and one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(folder / CHECKPOINTS / name for name in names)


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint that ``checkpoints_in`` has returned, and nothing else, whatever stands there by now.

    Raises:
        OSError: it stays, or a part of it.
    """
    *above, trial, folder, name = path.parts
    remove_tree(Path(*above), (trial, folder, name))


def drop_unkept(folder: Path, ledger: JobLedger, result: RunResult, uid: str) -> list[str]:
    """Remove the checkpoints that nobody wants to keep, and return what to say of that.

    Args:
        folder: of the run under one policy.
        ledger: its jobs; all have ended.
        result: what it came to.
        uid: what the ids of its trials begin with.
    """
    over = _over(ledger, result, uid)
    if not over:
        return []
    removed, lines = set[str](), list[str]()
    for one in over:
        state = folder / "state" / one.job.trial
        there = checkpoints_in(state)
        going = there[:-1] if one.newest_stays else there
        try:
            for path in going:
                remove_checkpoint(path)
        except OSError as error:
            lines.append(f"keep={one.keep.value!r}: a checkpoint of {one.job.trial} stays: {error}")
        if going:
            removed.add(one.job.trial)
    for address in sorted({one.store for one in over} - {""}):
        dropped, why_not = _drop_in(address, [one for one in over if one.store == address], folder)
        removed |= dropped
        if why_not:
            lines.append(
                f"keep: checkpoints in {address} stay: {why_not}; remove them with: specon clean --state {address}"
            )
    if removed:
        kinds = "', '".join(sorted({one.keep.value for one in over}))
        unfinished = sum(one.job.phase is not Phase.SUCCEEDED for one in over)
        told = f"; those of {unfinished} that failed or were ended early stay" if unfinished else ""
        lines.insert(0, f"keep='{kinds}': checkpoints of {len(removed)} trials are removed{told}")
    return lines


def _over(ledger: JobLedger, result: RunResult, uid: str) -> list[_Outcome]:
    """Return the trials whose checkpoints may go."""
    best_of = result.best()
    best = {trial for trials in best_of.values() for trial in trials}
    over = []
    for job in ledger.jobs.values():
        keep = _keep(job)
        if not job.trial or keep is Keep.ALL or not job.phase.ended:
            continue
        # A trial that failed or was ended early may go on; and where none is known to be the best, any may be.
        known = job.step.labels.get(labels.LABEL_SWEEP) in best_of
        wanted = job.trial.removeprefix(f"{uid}.") in best or not known
        stays = keep is Keep.NEWEST or (keep is Keep.BEST and wanted) or job.phase is not Phase.SUCCEEDED
        over.append(_Outcome(job, keep, stays))
    return over


def _keep(job: LocalJob) -> Keep:
    """Return what its sweep says; all stays where it says what nobody knows."""
    try:
        return Keep(job.step.annotations.get(labels.ANNOTATION_KEEP, Keep.ALL.value))
    except ValueError:
        return Keep.ALL


def _drop_in(address: str, over: Sequence[_Outcome], folder: Path) -> tuple[set[str], str]:
    """Remove checkpoints in a store; return whose they were, and what stood against the rest, empty for nothing."""
    dropped = set[str]()
    try:
        store = open_store(address)
        for one in over:
            owner = _owner(folder / "state" / one.job.trial)
            if owner and drop_checkpoints(store, one.job.trial, owner, keep=int(one.newest_stays)):
                dropped.add(one.job.trial)
    except (BadEnvironmentError, StoreError) as error:
        return dropped, str(error)[:_MOST_ERROR]
    return dropped, ""


def _owner(state: Path) -> str:
    try:
        return small_text(state / OWNER)
    except (OSError, ValueError):
        return ""  # no attempt with hooks
