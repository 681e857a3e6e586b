"""A sweep in the middle of its life: half of its trials have ended, some run, the others wait. Nothing trains.

What ran is in the ledger and in MLflow as if a controller had been killed, so that ``specon run`` goes on with it.
Those that run are processes that sleep; they have reported, and will not report again.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hera.workflows import Resources, Workflow
from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from controllers.core.model import Phase
from controllers.local_run.order import LocalSettings, Order
from controllers.local_run.run_folder import RunFolder, find_or_make_run
from controllers.policies.registry import parse_policy
from controllers.worlds.local.jobs import JobLedger, LocalJob, file_name, save_ledger
from hera_specon import Sweep, choice, integer, log_uniform, minimize
from mlflow_hooks import contract
from mlflow_hooks.state_folder import Identity, Run, write_identity, write_run

RUNNING: Final = 16
_NODES: Final = 2
_CORES: Final = 0.8
_STEPS: Final = 100
_MADE: Final = 40
_STEP_S: Final = 0.5
_OTHER_METRICS: Final = ("accuracy", "val_loss", "learning_rate", "gradient_norm")
_TITLE: Final = "looks"


@dataclass(frozen=True)
class QuietSweep:
    """A sweep in which nothing happens: what was asked for, and the folder of its run."""

    order: Order
    folder: RunFolder

    @property
    def of_policy(self) -> Path:
        """The folder of its only policy."""
        return self.folder.of_policy(0, file_name(self.order.policies[0].name))

    def submitted(self) -> Sequence[LocalJob]:
        """Return its trials as they are when they were submitted and have not run."""
        pods = self.order.program(self.folder.uid(0)).expand({}, ()).pods
        return [LocalJob(pod, 0.0, pod.cpu, workers=1) for pod in pods]


def quiet_sweep(state_dir: Path, trials: int, policy: str) -> QuietSweep:
    """Return a sweep of so many ``trials`` under ``policy``, which has not begun."""
    with Workflow(generate_name=f"{_TITLE}-", entrypoint=_TITLE) as workflow:
        Sweep(
            name=_TITLE,
            image="any",
            command=["sh", "-c", "exec sleep 1000000"],
            space={"lr": log_uniform(1e-4, 1e-2), "hidden": integer(32, 256), "activation": choice("relu", "tanh")},
            trials=trials,
            seed=0,
            objective=minimize("loss"),
            resources=Resources(cpu_request="100m", memory_request="16Mi"),
        )
    settings = LocalSettings(nodes=_NODES, cpus_per_node=_CORES, state_dir=state_dir)
    order = Order(workflow.to_dict(), Path("sweep.py"), [parse_policy(policy)], settings)
    return QuietSweep(order, find_or_make_run(state_dir, _TITLE, order.identity(), fresh=True))


def ledger_in_its_middle(sweep: QuietSweep) -> JobLedger:
    """Return what a controller would have kept of ``sweep`` that was killed in its middle."""
    submitted = sweep.submitted()
    ended = (len(submitted) - RUNNING) // 2
    jobs = [_begun(job, place, ended) if place < ended + RUNNING else job for place, job in enumerate(submitted)]
    return JobLedger({job.id: job for job in jobs})


def bring_to_its_middle(sweep: QuietSweep, store: str) -> None:
    """Write the ledger of ``sweep``, and the runs of its trials into the MLflow database ``store``."""
    ledger = ledger_in_its_middle(sweep)
    save_ledger(sweep.of_policy / "ledger.json", ledger)
    client = MlflowClient(store)
    # The services of the sweep may have made it meanwhile.
    known = client.get_experiment_by_name(_TITLE)
    experiment = known.experiment_id if known is not None else client.create_experiment(_TITLE)
    for place, job in enumerate(job for job in ledger.jobs.values() if job.attempt):
        _make_run(client, experiment, job, sweep.of_policy / "state" / job.trial, place)


def _begun(job: LocalJob, place: int, ended: int) -> LocalJob:
    node = (f"node-{1 + place % _NODES}",)
    begun = replace(job, nodes=node, first_nodes=node, attempt=1, started_at=1.0, released=True)
    if place >= ended:
        return replace(begun, phase=Phase.RUNNING)
    return replace(begun, phase=Phase.SUCCEEDED, ended_at=60.0, cpu_seconds=50.0)


def _make_run(client: MlflowClient, experiment: str, job: LocalJob, folder: Path, place: int) -> None:
    """Make the run of a trial that has begun, as the hooks do, and let its ``folder`` know it."""
    env, over, now = job.step.environment, job.phase.ended, int(time.time() * 1000)
    sweep, parent = env[contract.ENV_SWEEP_ID], uuid.uuid4().hex
    tags = {contract.TAG_TRIAL_ID: job.trial, contract.TAG_SWEEP_ID: sweep, "mlflow.parentRunId": parent}
    run_id = client.create_run(experiment, run_name=job.trial.rpartition(".")[2], tags=tags).info.run_id
    steps = _STEPS if over else _MADE
    values = {
        "loss": 1.0 + place % 7 / steps,
        **dict.fromkeys(_OTHER_METRICS, 0.5 + place / 1e5),
        contract.METRIC_CPU_SECONDS: steps * _STEP_S,
        contract.METRIC_OBJECTIVE_FIRST: 2.0,
        contract.METRIC_STEPS_TOTAL: _STEPS,
    }
    params = [Param(name, str(value)) for name, value in job.params.items()]
    shown = [RunTag(contract.TAG_NODE, job.nodes[0]), RunTag(contract.TAG_MOVES, "0")]
    client.log_batch(run_id, [Metric(name, value, now, steps) for name, value in values.items()], params, shown)
    if over:
        client.set_terminated(run_id, "FINISHED")
    folder.mkdir(parents=True)
    write_identity(folder, Identity(job.trial, job.trial.rpartition(".")[2], _TITLE, sweep, parent, job.params))
    write_run(folder, Run(run_id, has_params=True))
