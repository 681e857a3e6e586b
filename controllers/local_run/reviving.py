"""Changes to the ledger of a run that is gone on with: trials that wait again, and what their sweep asks for by now."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from controllers.core import labels
from controllers.core.model import Phase
from controllers.worlds.local.jobs import JobLedger, LocalJob, load_ledger, save_ledger
from controllers.worlds.local.workflow import PodStep, Program
from mlflow_hooks.contract import EXIT_MIGRATE

REVIVED_FILE: Final = "revived"
"""There while trials of a finished run are trained to their end."""
_OF_A_SEARCH: Final = (labels.ANNOTATION_PARAMS, labels.ANNOTATION_PARAM, labels.ANNOTATION_LINEAGE)


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
    revived = {
        name: replace(
            job, phase=Phase.PENDING, stop="", ended_at=None, asked_at=None, targets=(), exit_code=EXIT_MIGRATE
        )
        for name, job in ledger.jobs.items()
        if job.phase is Phase.STOPPED and chosen(job.trial.removeprefix(f"{uid}."))
    }
    if not revived:
        return going_on
    # In this order: whatever is interrupted, the next call finds that it is to go on.
    (folder / REVIVED_FILE).touch()
    save_ledger(folder / "ledger.json", JobLedger({**ledger.jobs, **revived}, ledger.delays))
    (folder / "result.json").unlink(missing_ok=True)
    return True


def take_on_changes(folder: Path, program: Program, *, ended: bool = False) -> None:
    """Have the trials that have not ended go on as ``program`` defines them: its resources, retries and so on.

    Args:
        folder: of the run under one policy.
        program: the sweep's, whose trials have the ids of that run.
        ended: whether those that have ended are told by its definition too, where only their objective is another.

    Raises:
        OSError: the folder cannot be written.
    """
    ledger = load_ledger(folder / "ledger.json")
    steps = {planned.step.id: planned.step for planned in program.trials()}
    going_on = {
        name: replace(job, step=_taken_on(job, steps[name]))
        for name, job in ledger.jobs.items()
        if name in steps and (ended or not job.phase.ended)
    }
    if going_on:
        save_ledger(folder / "ledger.json", JobLedger({**ledger.jobs, **going_on}, ledger.delays))


def _taken_on(job: LocalJob, step: PodStep) -> PodStep:
    """Return a step as it is defined now, with the hyperparameters that a search has given to its trial."""
    searched = {name: text for name, text in job.step.annotations.items() if name.startswith(_OF_A_SEARCH)}
    return replace(step, annotations={**step.annotations, **searched})
