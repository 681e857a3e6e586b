"""Runs that training scripts make themselves, by MLflow's own library alone: where they are, and which one counts.

A script makes them as in its author's shell: in any experiment, with any name, several of them, nested ones. MLflow
gives each the tags that ``MLFLOW_RUN_CONTEXT`` holds, and by these they are found.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.metric_source import FoundRun, believed, find_runs, newest_first
from controllers.tracking.mlflow_source import Scope
from controllers.tracking.run_context import PARENT
from controllers.tracking.script_trainings import ScriptTraining, ScriptTrainings
from controllers.tracking.sweep_runs import SweepRun
from mlflow_hooks import contract

_LONGEST_NAME: Final = 100
_PAGE: Final = 100
_MOST_PAGES: Final = 20
_LOOK_S: Final = 5.0
"""Seconds between two looks into the other experiments, at least."""
_WAIT: Final = 20.0
"""The next look waits so many times as long as the last one took, at least."""
_BEGAN_AGAIN: Final = " (began again)"
_UNSUCCESSFUL: Final = frozenset({"FAILED", "KILLED", "RUNNING"})


class Whereabouts:
    """Where the trials of a sweep log to: the experiments of the sweep, and others that their scripts chose.

    Args:
        client: of the tracking server.
        home: tells the experiments of the sweep, as far as they are known.
        clock: gives seconds that only go forward.

    Attributes:
        elsewhere: names of the other experiments by their ids, as far as they are known.
    """

    def __init__(
        self,
        client: MlflowClient,
        home: Callable[[], Scope],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._home = home
        self._clock = clock
        self._look_at = clock() + _LOOK_S
        self._told: set[str] = set()
        self.elsewhere: Mapping[str, str] = {}

    def experiments(self) -> Sequence[str]:
        """Return the ids of all that are known."""
        return (*self._home().experiment_ids, *self.elsewhere)

    def scope(self, *, lacking: bool) -> Scope:
        """Return where to look for the trials now.

        Args:
            lacking: whether a trial has no run in a known experiment; else no other is looked for.

        Raises:
            MlflowException: MLflow is away or refuses.
            OSError: it is away.
        """
        began = self._clock()
        if lacking and began >= self._look_at:
            self.look()
            self._look_at = self._clock() + max(_LOOK_S, _WAIT * (self._clock() - began))
        return Scope(self.experiments(), self._home().sweep_prefix)

    def news(self, home: Iterable[str]) -> Iterable[str]:
        """Yield in words, once for each, what other experiments trials log to; ``home`` names those of the sweep."""
        for experiment in self.elsewhere.keys() - self._told:
            self._told.add(experiment)
            name, own = self.elsewhere[experiment][:_LONGEST_NAME], ", ".join(sorted(set(home)))
            yield (
                f"trials log to the experiment {name!r} that their script names, not to {own!r}; they are followed "
                f"there. Sweep(experiment={name!r}) keeps the whole sweep together"
            )

    def look(self) -> None:
        """Look into the other experiments.

        Raises:
            MlflowException: MLflow is away or refuses.
            OSError: it is away.
        """
        home = self._home()
        if not home.sweep_prefix:
            return
        wanted = f"tags.`{contract.TAG_SWEEP_ID}` LIKE '{home.sweep_prefix}%' AND tags.`{contract.TAG_ATTEMPT}` != ''"
        elsewhere: dict[str, str] = {}
        for names in _others(self._client, home.experiment_ids):
            for run in self._client.search_runs([*names], wanted, max_results=_PAGE):
                elsewhere[run.info.experiment_id] = names[run.info.experiment_id]
        # What was found once stays: of many runs, a page shows only the newest.
        self.elsewhere = {**self.elsewhere, **elsewhere}


def _others(client: MlflowClient, home: Sequence[str]) -> Iterable[dict[str, str]]:
    """Yield the names of the other experiments by their ids, a page at a time."""
    token: str | None = None
    for _ in range(_MOST_PAGES):
        page = client.search_experiments(max_results=_PAGE, page_token=token)
        if names := {
            str(experiment.experiment_id): str(experiment.name)
            for experiment in page
            if str(experiment.experiment_id) not in home
        }:
            yield names
        token = page.token
        if not token:
            return


def runs_of_trial(client: MlflowClient, experiments: Sequence[str], trial: str, objective: str) -> list[FoundRun]:
    """Return the runs that may count as those of a trial, that which does first.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{trial}'"
    runs = newest_first(find_runs(client, experiments, wanted, (objective,)))
    if not runs:
        return []
    counts = believed(runs, {TrialId(trial): objective})[TrialId(trial)]
    return [counts, *(run for run in runs if run is not counts)]


def retire(client: MlflowClient, runs: Iterable[FoundRun]) -> None:
    """Take runs of a trial that begins again out of the account: their points do not count.

    They stay in MLflow under a name that says so.

    Raises:
        MlflowException: MLflow is away or refuses; what is done may be done again.
        OSError: it is away.
    """
    for run in runs:
        _abandon(client, run)
        _leave_out(client, run)


def _abandon(client: MlflowClient, run: FoundRun) -> None:
    name = str(client.get_run(run.run_id).info.run_name or run.trial.rpartition(".")[2])
    if not name.endswith(_BEGAN_AGAIN):
        client.update_run(run.run_id, name=f"{name}{_BEGAN_AGAIN}")
    if run.going_on:
        client.set_terminated(run.run_id, "KILLED")


def _leave_out(client: MlflowClient, run: FoundRun) -> None:
    client.set_tag(run.run_id, contract.TAG_PART_OF, run.trial)
    client.delete_tag(run.run_id, contract.TAG_TRIAL_ID)


def ended_badly(client: MlflowClient, experiments: Sequence[str], trial: str, attempt: str) -> bool:
    """Return whether MLflow knows that an attempt which is over has failed: its last own run did, or never ended.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{trial}' AND tags.`{contract.TAG_ATTEMPT}` = '{attempt}'"
    runs = client.search_runs(list(experiments), wanted, max_results=_PAGE, order_by=["attributes.start_time DESC"])
    ids = {run.info.run_id for run in runs}
    last = next((run for run in runs if run.data.tags.get(PARENT) not in ids), None)
    return last is not None and last.info.status in _UNSUCCESSFUL


def settle(
    client: MlflowClient,
    sweep: SweepRun,
    experiments: Sequence[str],
    succeeded: Mapping[str, bool],
    objectives: Mapping[TrialId, str],
) -> None:
    """Leave one run for each trial whose script made runs itself, and end those that nobody has ended.

    The others stay in MLflow, nested under the one that counts; the name of those of a training that did not go on says
    so.

    Args:
        client: of the tracking server.
        sweep: the run of the sweep.
        experiments: where its trials log to.
        succeeded: whether each trial that is over, by its id, came to a good end.
        objectives: name of the objective of each trial.

    Raises:
        MlflowException: MLflow is away or refuses; what is done may be done again.
        OSError: it is away.
    """
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep.sweep_id}' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
    metrics = tuple(dict.fromkeys(objectives.values()))
    made = find_runs(client, experiments, f"{wanted} AND tags.`{contract.TAG_ATTEMPT}` != ''", metrics)
    of_scripts = {run.trial for run in made if run.trial in succeeded}
    if not of_scripts:
        return
    runs = [run for run in find_runs(client, experiments, wanted, metrics) if run.trial in of_scripts]
    counts, trainings = believed(runs, objectives), ScriptTrainings(client)
    by_trial: dict[TrialId, list[FoundRun]] = {}
    for run in runs:
        by_trial.setdefault(run.trial, []).append(run)
    for trial, of_trial in by_trial.items():
        training = trainings.of(of_trial, objectives.get(trial, ""))
        _settle_trial(client, counts[trial], of_trial, training, succeeded=succeeded[trial])
        if not counts[trial].parent:  # it began before MLflow had a run of the sweep
            client.set_tag(counts[trial].run_id, PARENT, sweep.run_id)


def _settle_trial(
    client: MlflowClient, counts: FoundRun, runs: Sequence[FoundRun], training: ScriptTraining, *, succeeded: bool
) -> None:
    """End the runs of a trial, and leave only the one that ``counts`` in the account."""
    broken_off = {*training.attempts[:-1]} - {counts.attempt}
    for run in runs:
        if run.attempt in training.abandoned:
            _abandon(client, run)
        elif run.attempt and run.going_on:
            ended = "KILLED" if run.attempt in broken_off else "FINISHED" if succeeded else "FAILED"
            client.set_terminated(run.run_id, ended)
        if run is not counts:
            _set_beside(client, run, counts, runs)


def _set_beside(client: MlflowClient, run: FoundRun, counts: FoundRun, runs: Sequence[FoundRun]) -> None:
    if not (run.attempt or run.holds_data):
        client.delete_run(run.run_id)
        return
    if not any(other.run_id == run.parent and other.trial == run.trial for other in runs):
        client.set_tag(run.run_id, PARENT, counts.run_id)
    _leave_out(client, run)
