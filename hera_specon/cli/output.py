"""What commands print and write: a console, a progress bar, JSON."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hera_specon.display.console import OutlivingConsole, SafeConsole
from hera_specon.formatting import one_line, printable_lines

if TYPE_CHECKING:
    from controllers.core.results import RunResult
    from controllers.local_run.run import LocalRun

_MOST_OF_FRONT = 5
STDOUT = "-"
"""Stands for standard output where an option takes a file."""


def say(text: str, *, err: bool = False) -> None:
    """Print ``text`` as one line; others may have worded parts of it."""
    click.echo(one_line(text), err=err)


def say_lines(text: str, console: Console | None = None) -> None:
    """Print ``text`` by ``console``, to standard output without one, and keep its line ends."""
    if console is None:
        click.echo(printable_lines(text))
    else:
        console.print(printable_lines(text), highlight=False, markup=False, emoji=False, soft_wrap=True)


def write_out(text: str) -> None:
    """Print ``text`` as it is, for programs: JSON and YAML hold no character that steers a terminal."""
    click.echo(text)


def open_console(json_out: Path | None, wide: int | None = None, *, outlives: bool = False) -> Console:
    """Return the console to print to: standard error where standard output is kept for JSON.

    ``wide`` is its width in columns where it is no terminal, so that no table is cut off. What prints to one that
    ``outlives`` its reader goes on.
    """
    console = (OutlivingConsole if outlives else SafeConsole)(stderr=str(json_out) == STDOUT)
    return console if wide is None or console.is_terminal else SafeConsole(file=console.file, width=wide)


def print_how_it_went(console: Console, results: "Sequence[RunResult]", folder: Path) -> None:
    """Print how a sweep went under each policy, the best trials under the last, and where the best one's files are.

    Args:
        console: Where to.
        results: One for each policy.
        folder: The run's.
    """
    from hera_specon.display.tables import comparison_table, leaderboard, repeats_table  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.records.run_folder import newest_checkpoint, own_folder, parts_of  # noqa: PLC0415

    last = results[-1]
    console.print(comparison_table(results))
    console.print(repeats_table(results))
    console.print(leaderboard(last))
    for part in parts_of(folder)[-1:]:
        for best in (trial for trials in last.best().values() for trial in trials[:_MOST_OF_FRONT]):
            kept = {"Checkpoint": newest_checkpoint(part, best), "Working folder": own_folder(part, best)}
            for what in (what for what, where in kept.items() if where):
                told = f"{what} of {best}: {kept[what]}"
                console.print(told, highlight=False, markup=False, soft_wrap=True)


def problems(done: "LocalRun", results: "Sequence[RunResult]") -> str:
    """Return what went wrong in a run that has ended, empty for nothing.

    Trials or other steps failed, none logged its objective, or MLflow lacks something.
    """
    from hera_specon.records.failures import failed_steps, failures, without_models  # noqa: PLC0415 - as above
    from hera_specon.records.run_folder import parts_of  # noqa: PLC0415

    parts = parts_of(done.folder)
    told = [failures(parts, results), failed_steps(parts)]
    if not done.lacking:
        told.append(without_models(parts, results))
    else:
        told.append(f"{done.lacking}. {_how_whole(results)} To send the rest, run again: {this_command()}")
    return "\n".join(line for line in told if line)


def _how_whole(results: "Sequence[RunResult]") -> str:
    """Return whether the results have the values of all trials, though MLflow did not answer at the end.

    Trials with hooks keep what they log. Of those without, MLflow alone knows it.
    """
    trials = [trial for result in results for trial in result.trials if trial.succeeded and not trial.stopped]
    missing = [trial.id for trial in trials if trial.final_metric is None]
    if not missing:
        return "The results above are whole."
    which = missing[0] if len(missing) == 1 else f"{len(missing)} trials, such as {missing[0]}"
    return f"The results above lack the objective of {which}: without hooks, MLflow alone knows it."


def this_command() -> str:
    """Return the command line of this process, without what would make it start over."""
    return shlex.join(["specon", *(word for word in sys.argv[1:] if word != "--fresh")])


def write_json(target: Path, content: object) -> None:
    """Write ``content`` to the file ``target``, or to standard output where that is ``-``."""
    text = json.dumps(content, indent=2) + "\n"
    if str(target) == STDOUT:
        write_out(text.rstrip("\n"))
    else:
        target.write_text(text, encoding="utf-8")


@contextmanager
def progress_bar(console: Console, doing: str, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar such as ``searching ---- 3/10 sweeps`` on a terminal; the function that it gives advances it."""
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.advance(task, done)
