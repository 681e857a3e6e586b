"""Marks in MLflow on the runs of trials that are on the Pareto front of their sweep."""

from collections.abc import Sequence
from typing import Final

from mlflow.tracking import MlflowClient

from controllers.core.results import RunResult
from controllers.tracking.sweep_runs import SweepRun
from controllers.tracking.trial_runs import all_runs
from mlflow_hooks import contract

TAG_ON_FRONT: Final = "specon.on_front"
"""On a trial's run: ``true`` where no other trial of its sweep beats it, once that is over; absent elsewhere."""


def tag_front(client: MlflowClient, sweep: SweepRun, experiments: Sequence[str], result: RunResult) -> None:
    """Mark the runs of the trials on the front of ``sweep``, and take the mark from others: it may have gone on.

    Args:
        client: of the tracking server.
        sweep: the parent run.
        experiments: where its trials log to.
        result: what the sweep came to; of one objective, nothing is marked.

    Raises:
        MlflowException: MLflow is away or refuses; what is done may be done again.
        OSError: it is away.
    """
    uid, _, name = sweep.sweep_id.rpartition(".")
    front = result.fronts().get(name)
    if front is None:
        return
    on_it = {f"{uid}.{trial.id}" for trial in front}
    ours = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep.sweep_id}' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
    for run in all_runs(client, experiments, ours):
        marked, wanted = TAG_ON_FRONT in run.data.tags, run.data.tags[contract.TAG_TRIAL_ID] in on_it
        if wanted and not marked:
            client.set_tag(run.info.run_id, TAG_ON_FRONT, "true")
        elif marked and not wanted:
            client.delete_tag(run.info.run_id, TAG_ON_FRONT)
