"""``specon report``: the page about a run, or about several side by side."""

import os
from pathlib import Path

import click

from controllers.core.results import ComparisonError
from hera_specon.cli.found_runs import found_folder, found_record
from hera_specon.cli.options import NewFile, state_dir_option
from hera_specon.cli.output import say
from hera_specon.display.console import SafeConsole
from hera_specon.display.tables import comparison_table
from hera_specon.report.page import REPORT_FILE, write_page, write_report


@click.command(short_help="Write the page about a run: Gantt chart, shares, learning curves, figures.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--out", type=NewFile(), help="Where to write the page.  [default: report.html in the run's folder]")
@click.option(
    "--mlflow-tracking-uri",
    metavar="URL",
    help="MLflow that keeps the record of a sweep in a cluster.  [default: MLFLOW_TRACKING_URI]",
)
@state_dir_option("Folder that `specon run` keeps its runs in.")
def report(runs: tuple[str, ...], out: Path | None, mlflow_tracking_uri: str | None, state_dir: Path) -> None:
    """Write one self-contained HTML page about RUN; about several, compared with the first.

    RUN is the name or folder of a run on this machine (default: the run that began last), or a
    sweep in a cluster: its workflow's name, its id, or the id of its run in MLflow. The page needs
    no network and can be sent around. A run that is not finished is shown as far as it got.

    \b
    Examples:
      specon report
      specon report demo-3 --out demo.html
      specon report vae-sweep-x7k2p vae-sweep-b9q4d --mlflow-tracking-uri http://127.0.0.1:5000
    """  # noqa: D301 - \b keeps click from filling the lines after it
    uri = mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or None
    folder = found_folder(runs[0] if runs else None, state_dir, uri) if len(runs) < 2 else None  # noqa: PLR2004 - one
    if folder is not None:
        target = out or folder / REPORT_FILE
        write_report(folder, [target])
    else:
        record = found_record(runs, state_dir, uri)
        target = out or Path(f"{'-'.join(runs)}-report.html")
        try:
            write_page(record, [target])
            if results := record.results():
                SafeConsole(stderr=True).print(comparison_table(results))
        except ComparisonError as error:
            message = f"These runs cannot be compared: {error}"
            raise ComparisonError(message) from error
    say(str(target))
