"""The runs that people name on the command line: folders on this machine, and sweeps that MLflow keeps a record of."""

from collections.abc import Sequence
from pathlib import Path

from hera_specon.records.run_folder import RunNotFoundError, RunRecord, combine_records, find_run, load_run


def found_folder(run: str | None, state_dir: Path, uri: str | None) -> Path | None:
    """Return the folder of a run on this machine, None for one that MLflow may know.

    Args:
        run: its name or folder; None for the one that began last.
        state_dir: where runs are kept.
        uri: of the MLflow that may know it; without one, it has to be here.

    Raises:
        RunNotFoundError: it is not here, and no MLflow is named.
    """
    try:
        return find_run(run, state_dir)
    except RunNotFoundError as error:
        if run is None:
            raise
        if uri is None:
            message = f"{error} For a sweep in a cluster, name its MLflow with --mlflow-tracking-uri."
            raise RunNotFoundError(message) from None
        return None


def found_record(runs: Sequence[str | None], state_dir: Path, uri: str | None) -> RunRecord:
    """Return the record of ``runs`` as one, each named as ``found_folder`` takes it.

    Raises:
        SpeconError: one is not there, or cannot be read.
    """
    from controllers.tracking.access import be_impatient  # noqa: PLC0415 - `specon --help` must not wait for MLflow
    from controllers.tracking.client import CarefulClient  # noqa: PLC0415
    from hera_specon.records.tracked import tracked_record  # noqa: PLC0415

    be_impatient()
    records: list[RunRecord] = []
    client: CarefulClient | None = None
    for run in runs:
        folder = found_folder(run, state_dir, uri)
        if folder is not None:
            records.append(load_run(folder))
        elif run is not None:
            client = client or CarefulClient(uri)  # not sooner: without an address it makes a database right here
            records.append(tracked_record(client, run))
    return combine_records(records)
