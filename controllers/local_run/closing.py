"""Ends the MLflow runs of a sweep on this machine, once MLflow has all that its trials logged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlflow.tracking import MlflowClient

from controllers.core import labels
from controllers.core.goals import aims_in
from controllers.core.model import TrialId
from controllers.core.objectives import with_what_they_logged
from controllers.core.results import RunResult, TrialResult
from controllers.local_run.journals import also_of, journalled_samples
from controllers.local_run.logged import NamesLogged
from controllers.record.forecasts import FORECASTS_FILE
from controllers.tracking.access import MlflowAwayError
from controllers.tracking.front_tags import tag_front
from controllers.tracking.mlflow_source import MlflowSource
from controllers.tracking.script_runs import Whereabouts
from controllers.tracking.sweep_runs import SweepRun, close_sweep
from controllers.tracking.trial_runs import end_runs_left_open, settle_trials
from controllers.worlds.local.endings import is_hooked
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks import contract


@dataclass(slots=True)
class Closing:
    """What is left to do then; it may fail at any point, and be done again.

    Attributes:
        client: of the tracking server.
        runs: the parent runs.
        where: the experiments that the trials log to.
        folder: of the run under one policy.
        uid: what the ids of its trials begin with.
        jobs: those of its trials.
        result: what it came to; ``conclude`` adds what MLflow alone knows.
    """

    client: MlflowClient
    runs: Sequence[SweepRun]
    where: Whereabouts
    folder: Path
    uid: str
    jobs: Sequence[LocalJob]
    result: RunResult

    def settle(self, sweep: str) -> None:
        """Leave each trial of a sweep that is over, while its workflow goes on, with one run that has ended.

        Args:
            sweep: its id.

        Raises:
            MlflowException: MLflow is away or refuses.
            OSError: it is away.
        """
        if any(job.trial not in self._hooked for job in self.jobs):
            self.where.look()
        for run in self.runs:
            if run.sweep_id == sweep:
                self._settle(run)

    def conclude(self) -> None:
        """Read what scripts without our hooks logged, end all runs, and log what the sweep came to.

        Raises:
            MlflowAwayError: MLflow does not answer.
            MlflowException: it is away or refuses.
            OSError: it is away.
        """
        if any(job.trial not in self._hooked for job in self.jobs):
            self.where.look()
        self.result = replace(self.result, trials=self._with_what_mlflow_alone_knows())
        records = [path for name in ("timeline.jsonl", FORECASTS_FILE) if (path := self.folder / name).exists()]
        for run in self.runs:
            self._settle(run)
            tag_front(self.client, run, self.where.experiments(), self.result)
            close_sweep(self.client, run, self.result, records)

    @property
    def _hooked(self) -> frozenset[str]:
        return frozenset(job.trial for job in self.jobs if is_hooked(self.folder / "state" / job.trial))

    def _settle(self, run: SweepRun) -> None:
        """Leave each trial with one run that has its parameters, no matter who made it, and end the runs."""
        succeeded = {job.trial: job.exit_code == 0 for job in self.jobs if job.phase.ended}
        hooked = self._hooked
        experiments = self.where.experiments()
        of_scripts = {
            job.trial: job.params
            for job in self.jobs
            if job.trial not in hooked and job.step.env.get(contract.ENV_SWEEP_ID) == run.sweep_id
        }
        settle_trials(self.client, run, experiments, of_scripts, succeeded, self._objectives())
        end_runs_left_open(self.client, run, succeeded)

    def _objectives(self) -> dict[TrialId, str]:
        return {TrialId(job.trial): job.step.annotations[labels.ANNOTATION_OBJECTIVE] for job in self.jobs}

    def _with_what_mlflow_alone_knows(self) -> tuple[TrialResult, ...]:
        """Return the trials with the final values of those that keep no journal."""
        journalled = journalled_samples(self.folder / "state", self.jobs, float)
        further = {TrialId(job.trial): aims_in(job.step.annotations).metrics for job in self.jobs}
        silent = {
            trial: objective
            for trial, objective in self._objectives().items()
            if trial not in journalled or not dict(journalled[trial].also).keys() >= set(further[trial])
        }
        if not silent:
            return self.result.trials
        scope = self.where.scope(lacking=False)
        source = MlflowSource(self.client, lambda: scope, lambda: silent, float, further=lambda: further)
        samples = source.poll(whole=True)
        if source.away:
            message = "MLflow does not answer"
            raise MlflowAwayError(message)
        told = {
            trial.removeprefix(f"{self.uid}."): (
                replace(journalled[trial], also=also_of(journalled[trial], sample)) if trial in journalled else sample
            )
            for trial, sample in samples.items()
        }
        trials = (
            replace(
                trial,
                final_metric=told[trial.id].value,
                values=dict(told[trial.id].also),
                remark=told[trial.id].remark,
                begun_again=max(trial.begun_again, told[trial.id].begun_again),
            )
            if trial.id in told
            else trial
            for trial in self.result.trials
        )
        return with_what_they_logged(trials, NamesLogged(self.folder / "state", self.uid, source))
