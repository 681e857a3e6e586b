"""Trials that a policy ended early are made to wait again, so that their run can be gone on with."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from controllers.core.model import Phase
from controllers.worlds.local.jobs import JobLedger, load_ledger, save_ledger
from mlflow_hooks.contract import EXIT_MIGRATE

REVIVED_FILE: Final = "revived"
"""There while trials of a finished run are trained to their end."""


def revive(folder: Path, uid: str, chosen: Callable[[str], bool]) -> bool:
    """Let the ``chosen`` trials that were ended early wait for their next attempt; return whether any is to go on.

    A run whose revived trials were interrupted goes on with these.

    Args:
        folder: of the run under one policy.
        uid: what the ids of its trials begin with.
        chosen: tells by its short id whether a trial is to go on.

    Raises:
        OSError: the folder cannot be written.
    """
    going_on = (folder / REVIVED_FILE).exists()
    ledger = load_ledger(folder / "ledger.json")
    found = {
        name: replace(
            job, phase=Phase.PENDING, stop="", ended_at=None, asked_at=None, targets=(), exit_code=EXIT_MIGRATE
        )
        for name, job in ledger.jobs.items()
        if job.phase is Phase.STOPPED and chosen(job.trial.removeprefix(f"{uid}."))
    }
    if not found:
        return going_on
    # In this order: whatever is interrupted, the next call finds that it is to go on.
    (folder / REVIVED_FILE).touch()
    save_ledger(folder / "ledger.json", JobLedger({**ledger.jobs, **found}, ledger.delays))
    (folder / "result.json").unlink(missing_ok=True)
    return True
