"""``specon export``: the trials of a run as a table for other programs."""

import csv
import os
import sys
from pathlib import Path
from typing import Final, TextIO

import click

from hera_specon.cli.found_runs import found_record
from hera_specon.cli.options import state_dir_option
from hera_specon.cli.output import STDOUT
from hera_specon.formatting import one_line

_BEGIN_FORMULAS: Final = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
"""The wide forms too: spreadsheets take them for the same."""
_CONTROL: Final = frozenset("\t\r\n")


@click.command(short_help="Write the trials of a run as CSV.")
@click.argument("run", required=False)
@click.option(
    "--csv",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(STDOUT),
    help="File to write.  [default: standard output]",
)
@click.option(
    "--mlflow-tracking-uri",
    metavar="URL",
    help="MLflow that keeps the record of a sweep in a cluster.  [default: MLFLOW_TRACKING_URI]",
)
@state_dir_option("Folder that `specon run` keeps its runs in.")
def export(run: str | None, target: Path, mlflow_tracking_uri: str | None, state_dir: Path) -> None:
    """Write a line for each trial of RUN under each policy that has finished.

    It has the trial's hyperparameters (parameter.NAME), the newest value of its objective
    (final_metric), its times in seconds, moves, attempts and CPU seconds. A text that a spreadsheet
    would take for a formula begins with a quote (').

    RUN is the name or folder of a run on this machine (default: the run that began last), or a
    sweep in a cluster: its workflow's name, its id, or the id of its run in MLflow.

    \b
    Examples:
      specon export > trials.csv
      specon export demo-3 --csv trials.csv
      specon export vae-sweep-x7k2p --mlflow-tracking-uri http://127.0.0.1:5000
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from hera_specon.records.flat import flat_rows  # noqa: PLC0415 - `specon --help` must not wait for it

    uri = mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or None
    rows = flat_rows(found_record([run], state_dir, uri).results())
    if str(target) == STDOUT:
        _write(sys.stdout, rows)
    else:
        with target.open("w", newline="", encoding="utf-8") as file:
            _write(file, rows)


def _write(file: TextIO, rows: list[dict[str, object]]) -> None:
    # Trials of several sweeps may have different hyperparameters.
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_cell, columns))
    writer.writerows([_cell(row.get(name, "")) for name in columns] for row in rows)


def _cell(value: object) -> object:
    """Return ``value`` as a spreadsheet may have it: a text that it would take for a formula begins with a quote."""
    if value is None or isinstance(value, int | float):
        return value
    text = one_line(str(value))
    begins = text.lstrip()[:1]
    if (begins and begins in _BEGIN_FORMULAS) or str(value)[:1] in _CONTROL:
        return text if _is_number(text) else f"'{text}"
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
