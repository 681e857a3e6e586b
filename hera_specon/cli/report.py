"""``specon report``: the page about a run, or about several side by side."""

import os
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from controllers.core.results import ComparisonError
from hera_specon.cli.options import NewFile, state_dir_option
from hera_specon.display.tables import comparison_table
from hera_specon.records.run_folder import RunNotFoundError, RunRecord, combined, find_run, load_run
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
    uri = mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
    folders = [_folder(run, state_dir, uri) for run in runs or (None,)]
    if len(folders) == 1 and folders[0] is not None:
        target = out or folders[0] / REPORT_FILE
        write_report(folders[0], [target])
    else:
        record = _record(runs, folders, uri)
        target = out or Path(f"{'-'.join(runs)}-report.html")
        try:
            write_page(record, [target])
            if results := record.results():
                Console(stderr=True).print(comparison_table(results))
        except ComparisonError as error:
            message = f"These runs cannot be compared: {error}"
            raise ComparisonError(message) from error
    click.echo(target)


def _folder(run: str | None, state_dir: Path, uri: str | None) -> Path | None:
    """Return the folder of a run on this machine, None for one that MLflow may know."""
    try:
        return find_run(run, state_dir)
    except RunNotFoundError as error:
        if run is None:
            raise
        if uri is None:
            message = f"{error} For a sweep in a cluster, name its MLflow with --mlflow-tracking-uri."
            raise RunNotFoundError(message) from None
        return None


def _record(runs: Sequence[str], folders: Sequence[Path | None], uri: str | None) -> RunRecord:
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - `specon --help` must not wait for MLflow

    from controllers.tracking.access import be_impatient  # noqa: PLC0415
    from hera_specon.records.tracked import tracked_record  # noqa: PLC0415

    be_impatient()
    found: list[RunRecord] = []
    client: MlflowClient | None = None
    for run, folder in zip(runs, folders, strict=True):
        if folder is None:
            client = client or MlflowClient(uri)  # not sooner: without an address it makes a database right here
            found.append(tracked_record(client, run))
        else:
            found.append(load_run(folder))
    return combined(found)
