"""The MLflow runs of trials: found or made under that of their sweep, given what they lack, and ended.

The hyperparameters are the parameters of a run, but a script may log its own under the same names: what it logs stays,
in whatever form, and only what it left out is added at the end. Until then they stand in a tag.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlflow.entities import Param, Run, RunStatus
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.run_context import PARENT, params_tag
from controllers.tracking.script_runs import settle
from controllers.tracking.sweep_runs import SweepRun
from mlflow_hooks import contract
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.state_folder import sendable

_MOST_TWINS: Final = 20
_PAGE: Final = 1000
_MOST_RUNS: Final = 100_000
_LONGEST: Final = 6000
"""Characters of a parameter that MLflow takes."""
_MOST_PARAMS: Final = 1000
_MOST: Final = 100
"""Parameters that MLflow takes in one call."""


def open_trial_run(
    client: MlflowClient, sweep: SweepRun, trial: str, params: Mapping[str, Any], *, may_exist: bool
) -> str:
    """Return the id of the run of ``trial``. Of several that with its data counts, else the oldest, as for the hooks.

    Args:
        client: of the tracking server.
        sweep: the parent run.
        trial: the trial's id.
        params: its hyperparameters: a tag, as a script may log them too.
        may_exist: whether to look for one first.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    runs = _runs_of(client, sweep, trial) if may_exist else []
    if runs:
        run = runs[0]
    else:
        tags = {
            contract.TAG_TRIAL_ID: trial,
            contract.TAG_SWEEP_ID: sweep.sweep_id,
            PARENT: sweep.run_id,
            **params_tag(params),
        }
        run = client.create_run(sweep.experiment_id, run_name=trial.rpartition(".")[2], tags=tags)
    return str(run.info.run_id)


def settle_trials(
    client: MlflowClient,
    sweep: SweepRun,
    experiments: Sequence[str],
    trials: Mapping[str, Mapping[str, Any]],
    succeeded: Mapping[str, bool],
    objectives: Mapping[TrialId, str],
) -> None:
    """Leave each trial of a sweep with one run that has its parameters, no matter who made its runs, if anybody did.

    Args:
        client: of the tracking server.
        sweep: the parent run.
        experiments: where its trials log to.
        trials: the hyperparameters of those that may lack some, or a run, by their ids.
        succeeded: whether each trial that is over came to a good end.
        objectives: name of the objective of each trial.

    Raises:
        MlflowException: MLflow is away or refuses; what is done may be done again.
        OSError: it is away.
    """
    settle(client, sweep, experiments, succeeded, objectives)
    if trials:
        with_run = add_params(client, sweep, experiments, trials)
        for trial in sorted(trials.keys() & succeeded.keys() - with_run):
            run = open_trial_run(client, sweep, trial, trials[trial], may_exist=True)
            _log_params(client, run, trials[trial])


def add_params(
    client: MlflowClient, sweep: SweepRun, experiments: Sequence[str], known: Mapping[str, Mapping[str, Any]]
) -> set[str]:
    """Give the runs of trials the hyperparameters that nobody has logged there, and return the trials that have one.

    Args:
        client: of the tracking server.
        sweep: the parent run.
        experiments: where its trials log to.
        known: the hyperparameters of those trials by their ids; where there are none, the tag of a run tells them.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep.sweep_id}' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
    trials: set[str] = set()
    for run in all_runs(client, experiments, wanted):
        trial = run.data.tags[contract.TAG_TRIAL_ID]
        if trial not in known:
            continue
        trials.add(trial)
        params = known[trial] or _params_in(run)
        _log_params(
            client, run.info.run_id, {key: params[key] for key in params if sendable(key) not in run.data.params}
        )
    return trials


def _log_params(client: MlflowClient, run: str, params: Mapping[str, Any]) -> None:
    told = [Param(sendable(key), sendable(value)[:_LONGEST]) for key, value in params.items()]
    for start in range(0, len(told), _MOST):
        client.log_batch(run, params=told[start : start + _MOST])


def _params_in(run: Run) -> dict[str, Any]:
    try:
        params = parsed(run.data.tags.get(contract.TAG_PARAMS, "{}"))
    except ValueError:
        return {}
    return dict(list(params.items())[:_MOST_PARAMS]) if isinstance(params, dict) else {}


def _runs_of(client: MlflowClient, sweep: SweepRun, trial: str) -> list[Run]:
    """Return the runs of a trial: those with data first, of equals the oldest."""
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{trial}'"
    order = ["attributes.start_time ASC", "attributes.run_id ASC"]
    runs = client.search_runs([sweep.experiment_id], wanted, max_results=_MOST_TWINS, order_by=order)
    return sorted(runs, key=lambda run: not run.data.metrics)


def end_runs_left_open(client: MlflowClient, sweep: SweepRun, succeeded: Mapping[str, bool]) -> None:
    """End the runs of trials that nobody else ends: those of scripts that were killed, or never used MLflow.

    One that was left empty beside that with the trial's data is deleted. MLflow keeps what is deleted for a while.

    Args:
        client: of the tracking server.
        sweep: the parent run.
        succeeded: whether each trial, by its id, came to a good end.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    running = RunStatus.to_string(RunStatus.RUNNING)
    wanted = f"tags.`mlflow.parentRunId` = '{sweep.run_id}' AND attributes.status = '{running}'"
    for run in all_runs(client, [sweep.experiment_id], wanted):
        trial = run.data.tags.get(contract.TAG_TRIAL_ID, "")
        if trial not in succeeded:
            continue
        if not run.data.metrics and any(twin.data.metrics for twin in _runs_of(client, sweep, trial)):
            client.delete_run(run.info.run_id)
        else:
            client.set_terminated(run.info.run_id, "FINISHED" if succeeded[trial] else "FAILED")


def all_runs(client: MlflowClient, experiments: Sequence[str], wanted: str) -> list[Run]:
    """Return the runs in ``experiments`` that MLflow's filter ``wanted`` selects, as far as they are not too many.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    runs: list[Run] = []
    token: str | None = None
    while True:
        page = client.search_runs(list(experiments), wanted, max_results=_PAGE, page_token=token)
        runs += page
        token = page.token
        if not token or len(runs) > _MOST_RUNS:
            return runs
