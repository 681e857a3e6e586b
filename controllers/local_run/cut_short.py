"""A run that was cut short, and whose sweep is not what it was: nothing of it is dropped without its owner's word."""

from pathlib import Path

from controllers.core.errors import SpeconError
from controllers.local_run.changes import changed_options, changes, objective_alone_differs, trial_that_differs
from controllers.local_run.objective_check import objective_is_missing
from controllers.local_run.order import Order
from controllers.local_run.run_folder import RESULT_FILE, RunFolder, newest_run, unfinished_run
from controllers.worlds.local.jobs import load_ledger
from mlflow_hooks.journal import POINTS


class ChangedSweepError(SpeconError):
    """A sweep was changed since its run was cut short, and nobody has said what is to become of that."""


def check_nothing_is_dropped(order: Order) -> list[str]:
    """Return what to say of a run that was cut short and is not gone on with, since other options are given now.

    Raises:
        ChangedSweepError: its file was changed since; says how, and what can be done.
    """
    where = order.settings.state_dir, order.sweep
    folder = None if unfinished_run(*where, order.identity()) else newest_run(*where)
    if folder is None or folder.finished or not _has_progress(folder.path):
        return []
    try:
        before = Order.kept_in(folder)
    except SpeconError:
        return []  # begun by an older version, which did not keep what it was asked for
    same_file = before.source.resolve() == order.source.resolve()
    if not same_file or before.workflow == order.workflow:
        what = "; ".join(changed_options(before, order)) if same_file else f"it is of {before.source}"
        return [f"run {folder.name} was cut short, and this is another one ({what}): it goes on by its own command"]
    raise ChangedSweepError(_told(folder, before, order))


def mended_run(order: Order) -> RunFolder | None:
    """Return the newest run of the sweep, opened again, if its objective did not show and only that is another by now.

    Its trials are judged once more: results that lack the objective are taken away.
    """
    where = order.settings.state_dir, order.sweep
    folder = None if unfinished_run(*where, order.identity()) else newest_run(*where)
    missing = [path for path in folder.path.iterdir() if objective_is_missing(path)] if folder else []
    if folder is None or not missing:
        return None
    try:
        before = Order.kept_in(folder)
    except SpeconError:
        return None
    same_file = before.source.resolve() == order.source.resolve()
    if not same_file or before.workflow == order.workflow or not objective_alone_differs(before, order):
        return None
    for path in missing:
        (path / RESULT_FILE).unlink(missing_ok=True)
    folder.reopen(order.identity())
    return folder


def begun_run(order: Order) -> tuple[RunFolder, Order]:
    """Return the newest run of the sweep, which was cut short, and what it was asked for.

    Raises:
        SpeconError: there is none, or it has finished.
    """
    folder = newest_run(order.settings.state_dir, order.sweep)
    if folder is None or folder.finished:
        where = order.settings.state_dir / "runs"
        message = f"no run of {order.sweep!r} in {where} was cut short: leave --continue out"
        raise SpeconError(message)
    return folder, Order.kept_in(folder)


def _told(folder: RunFolder, before: Order, now: Order) -> str:
    choices = [f"--continue  goes on with {folder.name} as it was when it began"]
    if trial_that_differs(before, now) is None and not changed_options(before, now):
        choices.append(f"--extend    goes on with {folder.name} as {now.source} has it now: what is trained stays")
    choices.append(
        f"--fresh     begins again as {now.source} has it now; what {folder.name} has stays in {folder.path}"
    )
    lines = [
        f"run {folder.name} was cut short, and {now.source} has been changed since:",
        *(f"  {line}" for line in changes(before, now)),
        "Add to the command what is to be done:",
        *(f"  {line}" for line in choices),
    ]
    return "\n".join(lines)


def _has_progress(path: Path) -> bool:
    """Return whether a run holds anything that took a while: a trial that has ended, a checkpoint, a report."""
    if any(path.glob("*/result.json")) or any(path.glob("*/state/*/checkpoints/step-*")):
        return True
    if any(file.stat().st_size for file in path.glob(f"*/state/*/{POINTS}")):
        return True
    try:
        ledgers = [load_ledger(file) for file in path.glob("*/ledger.json")]
    except SpeconError:
        return True
    return any(job.phase.ended for ledger in ledgers for job in ledger.jobs.values())
