"""What went wrong in a run on this machine: why trials failed, and which sweeps came to no model at all."""

from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Final

from controllers.core.model import Phase
from controllers.core.objectives import missing_objectives
from controllers.core.results import RunResult, TrialResult
from controllers.worlds.local.jobs import file_name, load_ledger
from controllers.worlds.local.last_words import last_line, printed_last
from hera_specon import formatting
from mlflow_hooks.contract import EXIT_MIGRATE

MOST_TOLD: Final = 10
_MOST_LINE: Final = 300
_ALIKE: Final = "\n    it failed twice alike at once, so it was not tried again"
_LEFT: Final = (
    f"\n    exit code {EXIT_MIGRATE} says that it goes on in another attempt, but several in a row came no further, "
    "and nobody had asked them to leave"
)


def failures(parts: Sequence[Path], results: Sequence[RunResult]) -> str:
    """Return what became of the trials that failed, at most ten of them; empty where none did.

    Args:
        parts: the folders of the policies that the run has begun.
        results: those of the same policies.
    """
    folders: Sequence[Path | None] = parts if len(parts) == len(results) else [None] * len(results)
    told: list[str] = []
    for part, result in zip(folders, results, strict=True):
        for trial in (failed for failed in result.trials if not failed.succeeded):
            code = "" if trial.exit_code is None else f" with exit code {trial.exit_code}"
            log = _log_of(trial, part)
            said = f": {_shorten(last_line(log))}\n    its log: {log}" if log else ""
            why = _LEFT if trial.exit_code == EXIT_MIGRATE else _ALIKE if trial.given_up else ""
            told.append(f"  {trial.id} failed under {result.policy}{code}{said}{why}")
    if not told:
        return ""
    more = [f"  and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
    return "\n".join(["Some trials failed:", *told[:MOST_TOLD], *more])


def failed_steps(parts: Sequence[Path]) -> str:
    """Return what became of the other steps of a pipeline that failed, at most ten of them; empty where none did.

    Args:
        parts: the folders of the policies that the run has begun.
    """
    told: list[str] = []
    for part in parts:
        for job in load_ledger(part / "ledger.json").jobs.values():
            if not job.trial and job.phase is Phase.FAILED:
                log = part / "logs" / f"{file_name(job.id)}.log"
                said = _shorten(last_line(log))
                name = formatting.printable(job.id)
                told.append(f"  {name} failed with exit code {job.exit_code}: {said}\n    its log: {log}")
    if not told:
        return ""
    more = [f"  and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
    return "\n".join(["Some steps of the workflow failed:", *told[:MOST_TOLD], *more])


def without_models(parts: Sequence[Path], results: Sequence[RunResult]) -> str:
    """Return which sweeps came to no model because none of their trials logged the objective; empty for none.

    Args:
        parts: the folders of the policies that the run has begun.
        results: those of the same policies. The lines are shown that a trial of the last one printed last.
    """
    # Under each policy it is the same mistake.
    errors = list(dict.fromkeys(error for result in results for error in missing_objectives(result).errors))
    silent = [trial for trial in results[-1].trials if trial.without_objective] if errors else []
    log = _log_of(silent[0], parts[-1]) if silent and parts else None
    if log is not None:
        errors += printed_last(silent[0].id, log)
    return "\n".join(formatting.printable(error) for error in errors)


def _log_of(trial: TrialResult, part: Path | None) -> Path | None:
    return next((part / "logs").glob(f"*.{escape(trial.id)}.log"), None) if part else None


def _shorten(said: str) -> str:
    return formatting.printable(said or "it printed nothing")[:_MOST_LINE]
