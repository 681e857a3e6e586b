"""The value that a run logged last, where the steps of its metric went back: MLflow shows that of the greatest step.

A script that counts from 0 again, as in a second phase, does that. The hooks mark it as it happens. Of a run without
their mark only its points tell, and these are asked for once it has ended. ``hera_specon.answer.program`` follows the
same rule. Whatever MLflow holds is untrusted data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.objectives import went_back
from controllers.tracking.bounded_answers import TooMuchError, history_answer
from controllers.tracking.metric_source import FoundRun
from controllers.tracking.values import MetricPoint, history_of, newest_in_json
from mlflow_hooks import contract

MARKS: Final = (contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_BACK)
"""Metrics by which the hooks tell that they logged a run, and that steps went back in it."""
_PAGE: Final = 10_000
_MOST_PAGES: Final = 10
_LONGEST_NAME: Final = 100


def may_go_back(run: FoundRun) -> bool:
    """Return whether only the points of a run tell which value was logged last; it was read with its ``MARKS``."""
    by_hooks = contract.METRIC_OBJECTIVE_FIRST in run.metrics
    return contract.METRIC_STEPS_BACK in run.metrics or not (run.going_on or by_hooks)


def newest_by_time(client: MlflowClient, run: FoundRun, names: Iterable[str]) -> FoundRun:
    """Return a run with the points of the metrics of those ``names`` that were logged last, and a remark if others are.

    It is ``unsure`` where MLflow is away or refuses: ask again.
    """
    # What never came beyond step 0 went nowhere back.
    asked = [name for name in dict.fromkeys(names) if name in run.metrics and run.metrics[name].step > 0]
    for name in asked:
        shown = run.metrics[name]
        try:
            newest = max(points_of(client, run.run_id, name), key=by_time, default=shown)
        except TooMuchError:
            run = unknown(run, f"{name[:_LONGEST_NAME]!r} has more points in MLflow than are read")
            continue
        except (MlflowException, OSError):
            return replace(unknown(run, f"MLflow does not tell the points of {name[:_LONGEST_NAME]!r}"), unsure=True)
        if newest.step < shown.step:
            run = replace(run, metrics={**run.metrics, name: newest}, remark=went_back(name, shown.step, newest.step))
    return run


def by_time(point: MetricPoint) -> tuple[float, int]:
    """Return what points are put in order by."""
    return point.epoch_s, point.step


def unknown(run: FoundRun, why: str) -> FoundRun:
    """Return a run with the remark that nobody knows whether the values of its greatest steps were logged last."""
    told = f"{why}: whether its steps went back is not known, and the value of the greatest step counts"
    return replace(run, remark=told)


def points_of(client: MlflowClient, run_id: str, metric: str) -> Iterator[MetricPoint]:
    """Yield all points of a metric.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
        TooMuchError: they are more than is read, or no points.
    """
    uri = str(client.tracking_uri)
    if not uri.startswith(("http://", "https://")):
        yield from history_of(client, run_id, metric)
        return
    token = ""
    for _ in range(_MOST_PAGES):
        answer = history_answer(uri, run_id, metric, _PAGE, token)
        try:
            yield from [newest_in_json(point) for point in answer.get("metrics", ())]
            token = str(answer.get("next_page_token") or "")
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            message = f"the points of {metric!r:.100} make no sense: {str(error)[:200]}"
            raise TooMuchError(message) from error
        if not token:
            return
    message = f"{metric!r:.100} has more than {_MOST_PAGES * _PAGE:,} points"
    raise TooMuchError(message)
