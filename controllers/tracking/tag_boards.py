"""What the trials' MLflow runs should show by now, and what of that is still to be written.

This module imports no MLflow: what is known of a trial is kept from its start on, also while MLflow starts itself.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from controllers.core.actions import Assessment
from controllers.core.forecast import EndRange, Forecast
from controllers.core.lineage import trial_number
from controllers.core.model import Goals, Phase, Snapshot, Trial, TrialId
from mlflow_hooks import contract

Compose = Callable[[Trial, Assessment | None, str | None], dict[str, str]]
STOPPED: Final = "stopped"
_LOOK_S: Final = 0.1
_OUTCOMES: Final = {Phase.SUSPENDING: "suspended", Phase.SUSPENDED: "suspended", Phase.STOPPED: STOPPED}


class TagBoard:
    """An observer that keeps the tags of one sweep's trials up to date; of several changes the newest is written.

    Args:
        run_ids: tells the MLflow run of each trial that has one.
        compose: makes a trial's tags of what is known of it: itself, what a policy thinks, why it was acted on.
        changed: called when there may be something to write.
    """

    def __init__(
        self,
        run_ids: Callable[[], Mapping[TrialId, str]],
        compose: Compose,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._run_ids = run_ids
        self._compose = compose
        self._changed = changed
        self._wanted: Mapping[TrialId, dict[str, str]] = {}
        self._written: dict[str, dict[str, str]] = {}
        self._settled: dict[str, dict[str, str]] = {}
        self._runs: dict[str, str] = {}

    def call(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` from now on."""
        self._changed = changed

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Note the newest tags; return at once."""
        before, wanted = self._wanted, dict[TrialId, dict[str, str]]()
        for trial in snapshot.trials:
            tags = self._compose(trial, assessments.get(trial.id), reasons.get(trial.id))
            known = before.get(trial.id)
            if known is not None:
                # An ended trial has no node and no category any more: its run shows the last ones.
                tags = {**known, **tags}
            # The same object where nothing changed, so that a look at what is due passes over it.
            wanted[trial.id] = known if known is not None and known == tags else tags
        self._wanted = wanted
        self._changed()

    def due(self, *, also_minor: bool) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each trial with its run and the tags that changed; ``also_minor``: also where only the growth did.

        Those that were written longest ago come first, so that each gets its turn however much changes.
        """
        run_ids, wanted = self._run_ids(), self._wanted
        order = [*(trial for trial in wanted if trial not in self._written), *list(self._written)]
        for trial in (TrialId(name) for name in order if name in wanted):
            tags = wanted[trial]
            if trial not in run_ids:
                continue
            if self._runs.setdefault(trial, run_ids[trial]) != run_ids[trial]:
                # It began again, or another run of its script counts now: that shows nothing yet.
                self._runs[trial] = run_ids[trial]
                self.writes(trial, tags)
            if self._settled.get(trial) is tags:
                continue
            known = self._written.get(trial, {})
            news = {key: value for key, value in tags.items() if known.get(key) != value}
            if not news:
                self._settled[trial] = tags
            elif also_minor or news.keys() != {contract.TAG_GROWTH}:
                yield trial, run_ids[trial], news

    def wrote(self, name: str, news: Mapping[str, str]) -> None:
        """Note what a trial's run shows by now."""
        self._written[name] = {**self._written.pop(name, {}), **news}

    def writes(self, name: str, news: Mapping[str, str]) -> None:
        """Note that it is not known what a trial's run shows: what is wanted next may be what it showed before."""
        known = self._written.get(name, {})
        self._written[name] = {key: value for key, value in known.items() if key not in news}
        self._settled.pop(name, None)

    def settle(self, within_s: float) -> bool:
        """Wait until the runs show all that was decided; return whether they do after ``within_s`` seconds."""
        give_up = time.monotonic() + within_s
        while (waiting := any(self.due(also_minor=False))) and time.monotonic() < give_up:
            self._changed()
            time.sleep(_LOOK_S)
        return not waiting


class ForecastBoard:
    """Keeps the forecast ends of trials and sweeps on their runs; written only if they say something else than before.

    Args:
        trials: tells the MLflow run of each trial that has one.
        sweeps: tells that of each sweep.
        to_epoch: turns seconds of the sweep's clock into Unix seconds.
    """

    def __init__(
        self,
        trials: Callable[[], Mapping[TrialId, str]],
        sweeps: Callable[[], Mapping[str, str]],
        to_epoch: Callable[[float], float],
    ) -> None:
        self._trials = trials
        self._sweeps = sweeps
        self._to_epoch = to_epoch
        self._newest = Forecast(0.0)
        self._offered: dict[str, EndRange] = {}
        self._written: dict[str, EndRange] = {}

    def tell(self, forecast: Forecast) -> None:
        """Note the newest forecast; return at once. Nobody waits for its tags: they come with the next others."""
        self._newest = forecast

    def due(self, *, also_minor: bool) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each trial or sweep whose forecast has changed; all of these can wait."""
        if not also_minor:
            return
        newest, trials, sweeps = self._newest, self._trials(), self._sweeps()
        ends = [(name, sweeps.get(name), end) for name, end in newest.sweeps.items()]
        ends += [(trial, trials.get(trial), end) for trial, end in newest.trials.items()]
        for name, run_id, end in ends:
            if run_id is not None and end.is_news_after(self._written.get(name)):
                self._offered[name] = end
                yield name, run_id, end_tags(end, self._to_epoch)

    def wrote(self, name: str, news: Mapping[str, str]) -> None:
        """Note that a run shows what was yielded of it."""
        del news
        self._written[name] = self._offered[name]

    def writes(self, name: str, news: Mapping[str, str]) -> None:
        """Note that it is not known what a run shows."""
        del news
        self._written.pop(name, None)


def trial_tags(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
    """Return what a trial's MLflow run shows of it: share, node, moves, category, growth, and the newest reason."""
    tags = {contract.TAG_CPU: f"{trial.cpu:.3f}", contract.TAG_MOVES: str(trial.moves)}
    if trial.node is not None:
        tags[contract.TAG_NODE] = ", ".join(trial.nodes)
    if trial.gang:
        tags[contract.TAG_WORKERS] = str(trial.workers)
    if assessment is not None:
        tags |= _judged(assessment)
        if assessment.outlook or trial.goals != Goals():
            tags[contract.TAG_OUTLOOK] = assessment.outlook  # empty once what was foreseen is averted
    if reason is not None:
        tags[contract.TAG_REASON] = reason
    if trial.suspensions:
        tags[contract.TAG_SUSPENSIONS] = str(trial.suspensions)
    if trial.lineage:
        numbers = [trial_number(parent) for parent in trial.lineage]
        tags |= {contract.TAG_PARENT: numbers[-1], contract.TAG_LINEAGE: ",".join(numbers)}
    diverged = trial.diverged and trial.phase is Phase.SUCCEEDED
    if diverged or trial.suspensions or trial.phase in _OUTCOMES:
        tags[contract.TAG_OUTCOME] = "diverged" if diverged else _OUTCOMES.get(trial.phase, "")
    return tags


def end_tags(end: EndRange, to_epoch: Callable[[float], float]) -> dict[str, str]:
    """Return what a run shows of a forecast: instants, which stay right while time passes."""
    told = {contract.TAG_END: end.likely, contract.TAG_END_EARLIEST: end.low, contract.TAG_END_LATEST: end.high}
    return {tag: f"{datetime.fromtimestamp(to_epoch(at), UTC):%Y-%m-%dT%H:%M:%SZ}" for tag, at in told.items()}


def _judged(assessment: Assessment) -> dict[str, str]:
    tags: dict[str, str] = {}
    if assessment.category is not None:
        tags[contract.TAG_CATEGORY] = assessment.category.value
    if assessment.growth is not None:
        tags[contract.TAG_GROWTH] = f"{assessment.growth:.4g}"
    return tags
