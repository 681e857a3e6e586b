"""Find a past sweep: a run's folder on this machine, a sweep of a cluster, or any runs in MLflow."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.core.model import Direction, NodeName
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastSweepError
from controllers.local_run.order import LocalSettings
from controllers.tracking.client import CarefulClient
from controllers.tracking.logins import check_address
from controllers.worlds.local.serve_mlflow import DATABASE, database_uri
from controllers.worlds.simulated.workload import NodeSpec
from hera_specon.records.run_folder import (
    BrokenRunError,
    PolicyRun,
    RunNotFoundError,
    RunRecord,
    find_run,
    load_run,
    parts_of,
)
from hera_specon.records.tracked import policy_of, sweep_runs, tracked_record
from hera_specon.replay.past_sweeps import KnownObjective, Recorded, past_runs, recorded_sweep, runs_below
from hera_specon.replay.tracked_trials import TAG_PARENT, printable, tracked_trials
from mlflow_hooks.contract import TAG_SWEEP_ID, TAG_TRIAL_ID
from mlflow_hooks.foreign_json import parsed

Origin = Literal["local", "argo"]
_STOOD_STILL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look, and what a record may lack: cores of each node, and what is known of the objective."""

    state_dir: Path
    tracking_uri: str | None
    cpus_per_node: float | None
    objective: KnownObjective


@dataclass(frozen=True, slots=True)
class Past:
    """A sweep under each policy that it ran under; ``origin`` tells where, and so what things cost there."""

    sweeps: tuple[PastSweep, ...]
    origin: Origin


def find_past(wanted: str, where: Where) -> Past:
    """Return the past sweep that ``wanted`` names.

    Args:
        wanted: Name or folder of a run on this machine, a sweep's workflow, id or run, or an experiment.
        where: Where to look.

    Raises:
        SpeconError: The sweep was not found, cannot be rebuilt, or MLflow does not answer; says what to do.
    """
    try:
        try:
            folder = find_run(wanted, where.state_dir)
        except RunNotFoundError as error:
            return _in_mlflow(wanted, where, error)
        return _on_this_machine(folder, where)
    except (MlflowException, OSError) as error:
        message = f"MLflow does not answer: {str(error)[:300]}"
        raise SpeconError(message) from error


def _on_this_machine(folder: Path, where: Where) -> Past:
    record = load_run(folder)
    kept = folder.resolve().parents[1] / "mlflow"
    client = CarefulClient(
        where.tracking_uri or (database_uri(kept) if (kept / DATABASE).is_file() else _told_address(record))
    )
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    nodes = tuple(NodeSpec(NodeName(name), cpu) for name, cpu in cores_of(record).items())
    direction = record.about.get("direction")
    objective = KnownObjective(
        where.objective.metric or record.about.get("objective"),
        where.objective.direction or (Direction(direction) if direction in set(Direction) else None),
    )
    specs = record.about.get("policies") or [run.policy for run in record.runs]
    sweeps = []
    for position, (run, spec, part) in enumerate(zip(record.runs, specs, parts_of(folder), strict=False)):
        if run.result is None and any(other.result for other in record.runs):
            continue
        uid = f"{folder.name}-{record.about.get('uid_suffix')}-{position:02d}"
        of_sweep = f"tags.`{TAG_SWEEP_ID}` LIKE '{uid}.%' AND tags.`{TAG_TRIAL_ID}` != ''"
        recorded = Recorded(run, str(spec), nodes, tracked_trials(client, experiments, of_sweep), _began(run, part))
        sweeps.append(recorded_sweep(client, folder.name, recorded, objective))
    return Past(tuple(sweeps), "local")


def _told_address(record: RunRecord) -> str:
    """Return the address of MLflow that the folder of a run names: it may be somebody else's folder.

    Raises:
        SpeconError: It is none, or would get the reader's login.
    """
    uri = str(record.about.get("tracking_uri") or "")
    check_address(uri, str(record.folder / "run.json"))
    return uri


def _began(run: PolicyRun, part: Path) -> float | None:
    """Return when the sweep's clock began, None where it stood still for a while."""
    if run.result is None or run.result.interrupted_s > _STOOD_STILL_S:
        return None
    try:
        return float(parsed((part / "engine.json").read_text(encoding="utf-8"))["began_epoch_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def cores_of(record: RunRecord) -> dict[str, float]:
    """Return the cores of each node of a run on this machine, by name.

    Raises:
        BrokenRunError: Its folder does not tell.
    """
    try:
        told = record.about["cpus_per_node"]
        cores = tuple(map(float, told)) if isinstance(told, list) else float(told)
        settings = LocalSettings(int(record.about["nodes"]), cores)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{record.folder / 'run.json'} does not tell nodes and cpus_per_node: {error!r}"
        raise BrokenRunError(message) from error
    return dict(settings.machine({}).nodes)


def _in_mlflow(wanted: str, where: Where, not_local: RunNotFoundError) -> Past:
    if where.tracking_uri is None:
        message = f"{not_local} For a sweep in MLflow, say where that is: --mlflow-tracking-uri URL"
        raise RunNotFoundError(message)
    client = CarefulClient(where.tracking_uri)
    try:
        return Past(_of_cluster(client, wanted, where), "argo")
    except (RunNotFoundError, BrokenRunError) as error:
        runs = runs_below(client, wanted)
        if runs:
            return Past((past_runs(client, printable(wanted), runs, where.objective),), "argo")
        message = f"{error}. Nor has it an experiment or a run with nested runs of that name or id."
        raise RunNotFoundError(message) from None


def _of_cluster(client: MlflowClient, wanted: str, where: Where) -> tuple[PastSweep, ...]:
    parents = sweep_runs(client, wanted)
    record = tracked_record(client, wanted)
    if where.cpus_per_node is None:
        message = f"the record of {printable(wanted)} does not tell how large its nodes were: add --cpus-per-node"
        raise PastSweepError(message)
    sweeps = []
    for parent, run in zip(parents, record.runs, strict=True):
        if run.result is None and any(other.result for other in record.runs):
            continue
        nodes = tuple(NodeSpec(NodeName(name), where.cpus_per_node) for name in run.history.nodes())
        nested = f"tags.`{TAG_PARENT}` = '{parent.info.run_id}'"
        tracked = tracked_trials(client, [parent.info.experiment_id], nested)
        recorded = Recorded(run, printable(policy_of(parent)), nodes, tracked)
        sweeps.append(recorded_sweep(client, printable(wanted), recorded, where.objective))
    return tuple(sweeps)


def source_of(sweeps: Sequence[PastSweep]) -> PastSweep:
    """Return the sweep to take the work from: the one that nobody steered, else the first."""
    return next((sweep for sweep in sweeps if sweep.policy in {None, "default"}), sweeps[0])
