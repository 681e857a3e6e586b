"""Which runs that a trial's script made are one training: one that saves itself may make a new run each time.

What such a script logs after its restart tells whether it went on. Whatever MLflow holds is untrusted data.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.tracking.bounded_answers import TooMuchError
from controllers.tracking.metric_source import FoundRun, believed
from controllers.tracking.newest_by_time import by_time, points_of
from mlflow_hooks.going_on import beginning_of, goes_on

MOST_ATTEMPTS: Final = 100
"""The newest attempts of a trial that are asked for their steps: anybody may make runs with thousands of tokens."""


@dataclass(frozen=True, slots=True)
class ScriptTraining:
    """The training of a trial that counts, as far as its script's runs tell.

    Attributes:
        attempts: the tokens of its attempts, the oldest first; none where the script made no run.
        abandoned: those of the attempts before, of trainings that did not go on.
        begun_again: how many such trainings there were.
    """

    attempts: tuple[str, ...] = ()
    abandoned: frozenset[str] = frozenset()
    begun_again: int = 0


class ScriptTrainings:
    """Tells which runs of a trial are one training; remembers what cannot change.

    Args:
        client: of the tracking server.
    """

    def __init__(self, client: MlflowClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str, bool], tuple[int, ...]] = {}

    def of(
        self, runs: Iterable[FoundRun], objective: str, in_time: Callable[[], bool] = lambda: True
    ) -> ScriptTraining:
        """Return the training that counts.

        An attempt whose runs do not tell, as it logged nothing or MLflow does not answer, is taken to go on: nobody can
        say that it did not. So is one before the newest hundred.

        Args:
            runs: those of one trial.
            objective: the metric whose steps tell.
            in_time: whether there is time to ask MLflow.
        """
        by_attempt: dict[str, list[FoundRun]] = {}
        for run in sorted(runs, key=lambda run: (run.began, run.run_id)):
            if run.attempt:
                by_attempt.setdefault(run.attempt, []).append(run)
        newest = next(reversed(by_attempt), "")
        asked = frozenset([*by_attempt][-MOST_ATTEMPTS:])
        attempts, abandoned, beginning, begun_again = list[str](), list[str](), tuple[int, ...](), 0
        for attempt, of_attempt in by_attempt.items():
            (run,) = believed(of_attempt, {of_attempt[0].trial: objective}).values()
            since = self._beginning(run, objective, over=attempt != newest) if attempt in asked and in_time() else ()
            if beginning and since and not goes_on(beginning, since[0]):
                abandoned += attempts
                attempts, beginning, begun_again = [], (), begun_again + 1
            attempts.append(attempt)
            beginning = beginning_of((*beginning, *since))
        return ScriptTraining(tuple(attempts), frozenset(abandoned), begun_again)

    def _beginning(self, run: FoundRun, objective: str, *, over: bool) -> tuple[int, ...]:
        """Return the first steps of a run: two if it is ``over`` and had so many, else the first alone."""
        if objective not in run.metrics:
            return ()
        key = run.run_id, objective, over
        if key not in self._known:
            try:
                points = sorted(points_of(self._client, run.run_id, objective), key=by_time)
            except (MlflowException, OSError, TooMuchError):
                return ()
            self._known[key] = beginning_of(point.step for point in points)[: None if over else 1]
        return self._known[key]
