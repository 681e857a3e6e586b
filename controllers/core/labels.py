"""What a sweep's workflow and its readers have agreed on: names only.

A workflow manifest that uses these names is a sweep, whether Hera wrote it or a person did.
"""

from enum import StrEnum
from typing import Final

DOMAIN: Final = "hera-specon.io/"
"""Begins whatever is ours."""

LABEL_SWEEP: Final = "hera-specon.io/sweep"
"""On a trial's pod: name of its sweep, unique in the workflow."""
LABEL_TRIAL: Final = "hera-specon.io/trial"
"""On a trial's pod: number of the trial in its sweep, such as ``t007``."""

ANNOTATION_OBJECTIVE: Final = "hera-specon.io/objective"
"""On a trial's pod: name of the metric that says how good the model is."""
ANNOTATION_DIRECTION: Final = "hera-specon.io/direction"
"""On a trial's pod: ``minimize`` or ``maximize``."""
ANNOTATION_FURTHER_OBJECTIVES: Final = "hera-specon.io/further-objectives"
"""On a trial's pod: the objectives of its sweep beside the first, such as ``minimize latency, maximize accuracy``."""
ANNOTATION_CONSTRAINTS: Final = "hera-specon.io/constraints"
"""On a trial's pod: what metrics of a model must keep, such as ``memory_mb <= 512, accuracy >= 0.9``."""
ANNOTATION_POLICY: Final = "hera-specon.io/policy"
"""On a trial's pod: what steers the sweep, as a policy spec string; absent where its author left that open."""
ANNOTATION_WEIGHT: Final = "hera-specon.io/weight"
"""On a trial's pod: what its sweep counts among those of its namespace that run at the same time; 1 where absent."""
ANNOTATION_END_BY: Final = "hera-specon.io/end-by"
"""On a trial's pod: seconds after its workflow's start by which its sweep shall end, on as few nodes as do."""
ANNOTATION_BUDGET: Final = "hera-specon.io/budget"
"""On a trial's pod: what its sweep may cost, in the currency of the nodes' prices."""
ANNOTATION_END_WHEN: Final = "hera-specon.io/end-when"
"""On a trial's pod: the rules that end its sweep before all trials have ended, as a JSON object."""
ANNOTATION_AFTER: Final = "hera-specon.io/after"
"""On a trial's pod: ids of earlier sweeps that its sweep learns from, or ``same experiment``, with commas."""
ANNOTATION_PRIORITY: Final = "hera-specon.io/priority"
"""On a trial's pod: a whole number; of the sweeps of a namespace, those of a higher one come first; 0 where absent."""
ANNOTATION_WORKERS: Final = "hera-specon.io/workers"
"""On a trial's pod: how many workers a trial may have at most, which it starts with unless a controller says otherwise;
one where absent."""
ANNOTATION_MIN_WORKERS: Final = "hera-specon.io/min-workers"
"""On a trial's pod: how many workers it needs at least; as many as at most where absent."""
ANNOTATION_DEADLINE: Final = "hera-specon.io/deadline"
"""On a trial's pod: seconds from its submission by which it shall have ended; absent where it may take any time."""
ANNOTATION_TARGET: Final = "hera-specon.io/target"
"""On a trial's pod: the objective's value that is good enough; absent where its author named none."""
ANNOTATION_SECONDS_PER_STEP: Final = "hera-specon.io/seconds-per-step"
"""On a trial's pod: seconds that a step of its training shall take; absent where its author named none."""
ANNOTATION_SEARCH: Final = "hera-specon.io/search"
"""On a trial's pod: the search that gives the trial its hyperparameters, as ``controllers.search`` writes it; absent
where the workflow has them."""
ANNOTATION_PARAMS: Final = "hera-specon.io/params"
"""On a trial's pod: the hyperparameters that a search gave the trial, as a JSON object; absent until then."""
ANNOTATION_PARAM: Final = "hera-specon.io/param-"
"""On a trial's pod, followed by the name of a hyperparameter: its value, as it stands on a command line."""
ANNOTATION_LINEAGE: Final = "hera-specon.io/lineage"
"""On a trial's pod: the numbers of the trials from whose checkpoints the trial went on, as a JSON list; absent where it
always went on from its own."""
ANNOTATION_DEFAULT_CPU: Final = "hera-specon.io/default-cpu"
"""On a trial's pod: that its author named no request of CPU, so that the one that it has is a guess: ``true``; absent
where it is the author's."""
ANNOTATION_OWN_FOLDER: Final = "hera-specon.io/own-folder"
"""On a trial's pod: that the trial has a working folder of its own on one machine, and what is copied into that however
large it is, as a JSON list of paths; absent where all trials share one."""
ANNOTATION_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""On a trial's pod: ``true``, unless its author wrote another; without it, cluster-autoscaler never removes a node that
has a pod which only Argo makes again."""
ANNOTATION_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
"""On a trial's pod: ``true`` where Karpenter may not remove its node to save money, or to renew it."""
ANNOTATION_STAYS: Final = "hera-specon.io/stays"
"""On a trial's pod: that the controller wrote ``ANNOTATION_DO_NOT_DISRUPT``, ``true``; absent where its author did."""
ANNOTATION_KEEP: Final = "hera-specon.io/keep"
"""On a trial's pod: which checkpoints of its sweep stay once that is over, a ``Keep``; all where absent."""
ANNOTATION_RETRIES: Final = "hera-specon.io/retries"
"""On a trial's pod: how many of its failures its author forgives. Its retryStrategy, which is for Argo alone, counts
moves that it may make, too; absent where somebody else wrote that, and on the workers of a gang."""
ANNOTATION_RUN: Final = "hera-specon.io/mlflow-run"
"""On a trial's pod: id of its run in MLflow, which the controller made before the pod runs; absent where none did."""

ANNOTATION_ADOPTED: Final = "hera-specon.io/adopted"
"""On a Workflow: its own uid, once a controller steers it. Argo copies annotations when it resubmits a workflow, so the
uid of another one means nothing."""
ANNOTATION_STOP: Final = "hera-specon.io/stop-"
"""On a Workflow, followed by ``<sweep>-<number>`` of a trial: why that was stopped. Argo lets its step succeed then."""
ANNOTATION_GANG: Final = "hera-specon.io/gang-"
"""On a Workflow, followed by ``<sweep>-<number>`` of a gang: how many workers each of its attempts has, from the first,
such as ``1,3,2``. Attempts beyond the list have as many as the last of it. Only numbers of attempts that have begun may
grow; none of those may shrink."""
ANNOTATION_LEFT: Final = "hera-specon.io/left-"
"""On a Workflow, followed by ``<sweep>-<number>`` of a gang: the attempts that were asked to leave, such as ``0,2``:
they count as no failure."""
ANNOTATION_TRIES: Final = "hera-specon.io/tries-"
"""On a Workflow, followed by ``<sweep>-<number>`` of a trial: an attempt that fails after this many others is the last.
Fewer than its author allows where it failed twice alike at once, and more where it was interrupted, since that is no
failure. Of a gang, others that were asked to leave do not count."""
ANNOTATION_IDLE: Final = "hera-specon.io/idle-"
"""On a Workflow, followed by ``<sweep>-<number>`` of a trial that leaves again and again unasked and comes no further:
an attempt that leaves after this many others is the last, too."""
ANNOTATION_ASKED: Final = "hera-specon.io/asked"
"""On a Workflow: what its owner asks of trials, ``pause`` or ``stop``, as a JSON object of trial (such as ``vae.t007``)
to that. Who takes a trial out of it lets that go on."""
ANNOTATION_SET_POLICY: Final = "hera-specon.io/set-policy"
"""On a Workflow: the policy, as a spec string, that its owner wants instead of those that its sweeps name."""
ANNOTATION_QUEUE: Final = "hera-specon.io/queue-"
"""On a Workflow, followed by what tells the policy of its sweeps from others: what a controller gives these sweeps of
the cluster, and why, as a JSON object."""
ANNOTATION_UNSAVED: Final = "hera-specon.io/unsaved-"
"""On a Workflow, followed by what tells the policy of its sweeps from others: why their newest state is not kept, in
words. Gone once it is."""
ANNOTATION_FIRST_NODES: Final = "hera-specon.io/first-nodes"
"""On a Workflow: the node of each trial's first attempt, as a JSON object of trial (such as ``vae.t007``) to node."""

GATE_PLACEMENT: Final = "hera-specon.io/placement"
"""Scheduling gate that keeps a trial's pod from being scheduled until a controller has chosen its node."""

PARAMETER_CONTINUE: Final = "continue-sweep"
"""Workflow parameter: uid of the workflow whose trials go on in this one; empty where they start from nothing."""


class Keep(StrEnum):
    """Which checkpoints stay once a sweep is over: all, the newest of each trial, that of the best trial, or none."""

    ALL = "all"
    NEWEST = "newest"
    BEST = "best"
    NONE = "none"


def root_of(sweep: str) -> str:
    """Return what tells whose a sweep is: its id, or what that begins with, up to the first dot.

    A name that somebody chose for ``continue-sweep`` may hold dots, and what follows them could be a sweep's name.
    """
    return sweep.partition(".")[0]


INPUT_TRIAL: Final = "trial"
"""Input parameter of a trial template: number of the trial in its sweep."""
INPUT_PARAMS: Final = "params"
"""Input parameter of a trial template: all hyperparameters as a JSON object."""
INPUT_DELAY: Final = "delay"
"""Input parameter of a sweep's delay template: a duration such as ``50s``."""
INPUT_ATTEMPT: Final = "gang-attempt"
"""Input parameter of a worker template: number of the gang's attempt, from 0."""
INPUT_RANK: Final = "gang-rank"
"""Input parameter of a worker template: rank of the worker in its gang, from 0."""
INPUT_WORKERS: Final = "gang-workers"
"""Input parameter of a worker template: how many workers the attempt had as this worker was made."""
INPUT_DEADLINE: Final = "goal-deadline"
"""Input parameter of a trial template: the trial's own deadline, as its annotation has it."""
INPUT_TARGET: Final = "goal-target"
"""Input parameter of a trial template: the trial's own target, as its annotation has it."""
INPUT_SECONDS_PER_STEP: Final = "goal-seconds-per-step"
"""Input parameter of a trial template: the trial's own seconds per step, as its annotation has it."""

SUFFIX_TRIAL: Final = "-trial"
"""Ends the name of the template of a sweep's trials."""
SUFFIX_WORKER: Final = "-worker"
"""Ends the name of the template of a gang's workers; that of its trials runs them as steps."""
STEP_WORKER: Final = "worker"
"""The step of a gang's trial that runs its workers."""
SUFFIX_ARRIVAL: Final = "-arrival"
"""Ends the name of the template that waits, then runs one trial."""
SUFFIX_DELAY: Final = "-delay"
"""Ends the name of the template that only waits."""
SUFFIX_BEST: Final = "-best"
"""Ends the name of the template that tells what the sweep came to."""
ANNOTATION_ANSWER: Final = "hera-specon.io/answer"
"""On the template of a step that tells what a sweep came to: name of the sweep, whose runs in MLflow it reads."""

ANNOTATION_MOVE_TO: Final = "hera-specon.io/move-to"
"""On a trial's pod: the node its next attempt shall run on. The durable mark of a move. On the first pod of a gang: the
node of each worker, by rank, with commas."""
ANNOTATION_PLACE: Final = "hera-specon.io/place"
"""On the first pod of a gang's attempt: the node of each worker, as for a move. The durable mark of a place that was
chosen while the pods waited at their gates; it stays once they went on."""
ANNOTATION_WORLD_SIZE: Final = "hera-specon.io/world-size"
"""On the pod of a gang's worker: how many workers train together in this attempt."""
ANNOTATION_ATTEMPT: Final = "hera-specon.io/attempt-token"
"""On the pod of a gang's worker: what is the same for all workers of this attempt, and was never before."""
ANNOTATION_MOVE_ASKED_AT: Final = "hera-specon.io/move-asked-at"
"""On a trial's pod: when the move was asked for, in Unix seconds."""
ANNOTATION_LEAVE: Final = "hera-specon.io/leave"
"""On a trial's pod that was asked to leave where its controller may send no signals: what tells its attempt from all
others, as its program knows that. It stays: a program that has seen it cannot be told to forget it."""
ANNOTATION_REST: Final = "hera-specon.io/rest"
"""On a trial's pod that was asked to leave so that the trial rests: ``suspend``."""
ANNOTATION_SUSPENDED: Final = "hera-specon.io/suspended"
"""On a trial's pod that waits to go on after a suspension, and stays once it went on: ``true``."""
ANNOTATION_SUSPENSIONS: Final = "hera-specon.io/suspensions"
"""On a trial's pod: how often the trial had been suspended before this pod ran."""
ANNOTATION_IDLING: Final = "hera-specon.io/idling"
"""On a trial's pod: how many attempts in a row before it left unasked and came no further, the step that the trial had
come to, and how many of its attempts that left count as failures, such as ``3,120,1``."""
ANNOTATION_PLACED_ON: Final = "hera-specon.io/placed-on"
"""On a trial's pod: the node that the controller chose for it when it opened the gate."""
ANNOTATION_OWN_HOST: Final = "hera-specon.io/own-host"
"""On a trial's pod that the controller bound to a node, though its author had selected that host already: ``true``."""
ANNOTATION_MOVED_FROM: Final = "hera-specon.io/moved-from"
"""On a trial's pod: the node that the attempt before it left in a move."""
ANNOTATION_MOVES: Final = "hera-specon.io/moves"
"""On a trial's pod: how many moves the trial had completed before this pod ran."""
ANNOTATION_RESIZES: Final = "hera-specon.io/resizes"
"""On a trial's pod: how many resizes the trial had seen when this was last written."""
ANNOTATION_BASE_CPU: Final = "hera-specon.io/base-cpu"
"""On a trial's pod that was resized: the CPU request that it was created with, in cores."""
LABEL_STATE: Final = "hera-specon.io/state"
"""On a ConfigMap: name of the workflow whose controller's state it holds."""
MOVED_MESSAGE: Final = "hera-specon.io: moved"
"""Termination message of an attempt that was ended by force for a move: not the trial's own failure."""
