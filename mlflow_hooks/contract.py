"""What a trial and whatever runs it have agreed on: names and numbers, no behaviour.

A training program in any language may follow it: read the environment below, log to MLflow
under the names below, and on SIGTERM, or when ``ENV_LEAVE_FILE`` names its attempt, save a checkpoint and exit with
``EXIT_MIGRATE``.
"""

from typing import Final

EXIT_MIGRATE: Final = 75
"""Exit code (EX_TEMPFAIL) of an attempt that has saved its state and wants to go on elsewhere.

All workers of a gang leave with it after the same step, whichever of them was asked; so does one that waited too long
for the others to begin with it."""
EXIT_PEERS_LOST: Final = 76
"""Exit code of a gang's worker that lost another one. The attempt counts as one failure, that of the one lost."""

ENV_TRIAL_ID: Final = "SPECON_TRIAL_ID"
"""Identity of the trial over all its attempts; also a safe file name."""
ENV_SWEEP_ID: Final = "SPECON_SWEEP_ID"
"""Identity of the sweep that the trial belongs to."""
ENV_ATTEMPT: Final = "SPECON_ATTEMPT"
"""Token that is different for each attempt of a trial, the same for all workers of one; the newest attempt owns the
trial."""
ENV_RANK: Final = "RANK"
"""Number of this worker in its gang, from 0; only where a trial may have several workers. Torch's own name."""
ENV_WORLD_SIZE: Final = "WORLD_SIZE"
"""How many workers this attempt has; only where a trial may have several. Torch's own name."""
ENV_WORKERS_MAX: Final = "SPECON_WORKERS_MAX"
"""How many workers the trial may have at most; only where that is more than one."""
ENV_POD_IP: Final = "SPECON_POD_IP"
"""Address that rank 0 listens at; absent where all workers share a machine and meet in a file."""
ENV_PARAMS: Final = "SPECON_TRIAL_PARAMS"
"""The trial's hyperparameters as a JSON object; logged as the MLflow run's parameters."""
ENV_PARAM: Final = "SPECON_PARAM_"
"""Begins the names of variables that hold one hyperparameter each, such as ``SPECON_PARAM_lr``; there are some only
where a search gives the trial its hyperparameters."""
ENV_LINEAGE: Final = "SPECON_LINEAGE"
"""Numbers of the trials of the sweep from whose checkpoints the trial goes on, as a JSON list such as ``["t003"]``, one
for each time; empty or absent where it goes on from its own. An attempt that finds more of them than those before it
takes over the newest checkpoint of the last one instead of its own."""
ENV_RUN: Final = "MLFLOW_RUN_ID"
"""The run of an attempt that left by ``EXIT_MIGRATE``, if its script made one: MLflow's own library goes on with it."""
ENV_RUN_CONTEXT: Final = "MLFLOW_RUN_CONTEXT"
"""Tags as a JSON object, which MLflow's own library gives to each run that the script makes: the tags of the trial, of
its sweep and of the attempt. So a script without hooks makes its runs as anywhere else, and they are found by them."""
ENV_TRACKING: Final = "SPECON_TRACKING_URI"
"""Where the hooks log to, whatever the script tells MLflow; absent where ``MLFLOW_TRACKING_URI`` alone tells it."""
ENV_SENDER: Final = "SPECON_SENDER"
"""``sweep`` where the sweep sends what its trials journal, as on one machine; else each trial sends its own points."""
SENDER_SWEEP: Final = "sweep"
ENV_OBJECTIVE: Final = "SPECON_OBJECTIVE"
"""Name of the metric that says how good the model is."""
ENV_DIRECTION: Final = "SPECON_DIRECTION"
"""``minimize`` or ``maximize``."""
ENV_STATE_ROOT: Final = "SPECON_STATE_ROOT"
"""Folder under which each trial keeps ``<trial id>/`` with checkpoints and unsent metrics."""
ENV_STATE_STORE: Final = "SPECON_STATE_STORE"
"""Address of the store of objects that the folders of ``ENV_STATE_ROOT`` are kept in, such as ``s3://bucket/prefix``;
absent where these outlive an attempt by themselves."""
ENV_GRACE: Final = "SPECON_GRACE_S"
"""Seconds that an attempt has between SIGTERM and SIGKILL (a decimal number)."""
ENV_LEAVE_FILE: Final = "SPECON_LEAVE_FILE"
"""File that names, by its ``ENV_ATTEMPT``, the attempt that is asked to leave; empty until then. Only in a pod: there
Kubernetes shows an annotation in it, for a controller that may send no signals. It is replaced, never written to."""
ENV_PRINTED: Final = "SPECON_PRINTED"
"""What the lines of a program look like whose printed metrics are read, as JSON; empty for ``loss: 0.31`` and the like.
"""
ENV_TRIAL_FOLDER: Final = "SPECON_TRIAL_FOLDER"
"""Folder of the trial's own, the same for all its attempts, to write whatever it likes into; only on one machine."""
ENV_PARENT_RUN_ID: Final = "SPECON_PARENT_RUN_ID"
"""MLflow run of the sweep; the trial's run is nested under it."""
ENV_NODE: Final = "SPECON_NODE"
"""Name of the node that this attempt runs on."""
ENV_CPUS: Final = "SPECON_CPUS"
"""Cores this attempt may use at most (a decimal number); thread counts follow it."""
ENV_CPUS_FILE: Final = "SPECON_CPUS_FILE"
"""File that holds this attempt's fair part of the cores now (a decimal number), which changes as others come and go;
thread counts follow it, too. Absent where ``SPECON_CPUS`` tells all."""
ENV_THREADS: Final = "SPECON_THREADS"
"""``OMP_NUM_THREADS`` where this world chose it, so that it may follow the share; absent where the user did."""
ENV_FLUSH: Final = "SPECON_FLUSH_S"
"""Seconds for which a trial that has ended waits for MLflow to take the rest: long where nobody sends what is left."""

TAG_TRIAL_ID: Final = "specon.trial_id"
TAG_SWEEP_ID: Final = "specon.sweep_id"
TAG_ATTEMPT: Final = "specon.attempt"
"""Token of the attempt whose script made the run by MLflow's own library; runs that our hooks log to have none."""
TAG_PART_OF: Final = "specon.part_of"
"""Id of a trial on a run beside the one that counts: of an attempt that began again, or one of several of a script."""
TAG_PARAMS: Final = "specon.params"
"""The hyperparameters as JSON, on a run that a script made: its own parameters may have the same names."""
TAG_CATEGORY: Final = "specon.category"
TAG_GROWTH: Final = "specon.growth"
TAG_NODE: Final = "specon.node"
TAG_WORKERS: Final = "specon.workers"
"""How many workers the trial has, where it may have several; ``specon.node`` names the node of each then, by rank."""
TAG_CPU: Final = "specon.cpu"
TAG_MOVES: Final = "specon.moves"
TAG_SUSPENSIONS: Final = "specon.suspensions"
TAG_PARENT: Final = "specon.parent"
"""Number of the trial from whose checkpoint the trial went on last, such as ``t003``; only where it did."""
TAG_LINEAGE: Final = "specon.lineage"
"""Numbers of all trials from whose checkpoints it went on, the first one first, with commas between."""
TAG_OUTCOME: Final = "specon.outcome"
"""``suspended`` while a trial waits to go on, ``stopped`` once it was ended early, ``diverged`` where it trained to its
end and its objective is NaN or infinite there; empty where it went on again."""
TAG_COST: Final = "specon.cost"
"""What a trial or sweep has cost so far, in the currency of the nodes' prices; only where these are known."""
TAG_REASON: Final = "specon.reason"
TAG_OUTLOOK: Final = "specon.outlook"
"""What the policy foresees, such as that the trial will miss its deadline; empty where there is nothing to tell."""
TAG_END: Final = "specon.end"
"""When the trial, or the sweep whose run it is, will end as far as can be foreseen: UTC, as in 2026-11-03T14:32:10Z."""
TAG_END_EARLIEST: Final = "specon.end_earliest"
"""The earliest end: nine times of ten it ends between this and ``TAG_END_LATEST``."""
TAG_END_LATEST: Final = "specon.end_latest"
"""The latest end, in the same sense."""

METRIC_CPU_SECONDS: Final = "specon.cpu_seconds"
"""CPU seconds the trial has used, summed over its attempts."""
METRIC_CPU_WAIT: Final = "specon.cpu_wait_seconds"
"""Seconds for which its threads were ready to run and others had the CPUs, each thread's counted, over its attempts."""
METRIC_PARAM: Final = "specon.param."
"""Followed by the name of a hyperparameter: its value from that step on, where it changed while the trial trained."""
METRIC_OBJECTIVE_FIRST: Final = "specon.objective_first"
"""The first finite value of the objective that the trial reported; logged once."""
METRIC_STEPS_BACK: Final = "specon.steps_back"
"""The greatest step before a metric of the trial first went on at a smaller one, as in a second phase; logged once."""
METRIC_STEPS_TOTAL: Final = "specon.steps_total"
"""How many steps the trial will make in all, where it knows; logged once."""
