"""``specon report``: the page about a run."""

from pathlib import Path

import click

from hera_specon.cli.options import NewFile
from hera_specon.report.page import REPORT_FILE, write_report
from hera_specon.report.record import find_run


@click.command(short_help="Write the page about a run: Gantt chart, shares, learning curves, figures.")
@click.argument("run", required=False)
@click.option("--out", type=NewFile(), help="Where to write the page.  [default: report.html in the run's folder]")
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".specon"),
    show_default=True,
    help="Folder that `specon run` kept its runs in.",
)
def report(run: str | None, out: Path | None, state_dir: Path) -> None:
    """Write one self-contained HTML page about RUN: its name, its folder, or the one begun last.

    The page needs no network and can be sent around. A run that still goes on, or was
    interrupted, is shown as far as it got.

    \b
    Examples:
      specon report
      specon report demo-3 --out demo.html
    """  # noqa: D301 - \b keeps click from filling the lines after it
    folder = find_run(run, state_dir)
    target = out or folder / REPORT_FILE
    write_report(folder, [target])
    click.echo(target)
