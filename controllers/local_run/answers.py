"""Holds back the step that tells a sweep's answer until MLflow has all that the sweep's trials logged.

Trials on this machine leave what they log on the disk, and others bring it to MLflow. What a script only printed, and
how its runs ended, MLflow would know at the end of the whole workflow alone: too late for a step that reads it there.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from controllers.core import labels
from controllers.core.results import RunResult
from controllers.local_run.late_mlflow import LateMlflow
from controllers.tracking.access import shown
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.delivery import end_untold

if TYPE_CHECKING:
    from controllers.local_run.opened_mlflow import OpenedMlflow

_AGAIN_S: Final = 1.0
_TELL_AFTER_S: Final = 30.0
_TAGS_S: Final = 15.0
_MOST_PROBLEM: Final = 200


@dataclass(slots=True)
class _Delivery:
    """That of one sweep."""

    done: threading.Event = field(default_factory=threading.Event)
    problem: str = "it has not answered yet"
    began: float = field(default_factory=time.monotonic)
    told: bool = False


class Answers:
    """The sweeps whose answers steps wait for.

    Args:
        mlflow: that of the run.
        folder: of the run under one policy.
        look: reads what trials have printed so far; returns whether that is all of those that have ended.
        keep_printed: keeps the objective of trials that only printed it, so that it is brought, too.
    """

    def __init__(
        self,
        mlflow: LateMlflow,
        folder: Path,
        look: Callable[[Iterable[LocalJob]], bool],
        keep_printed: "Callable[[OpenedMlflow, Sequence[LocalJob]], None]",
    ) -> None:
        self._mlflow = mlflow
        self._look = look
        self._folder = folder
        self._keep_printed = keep_printed
        self._deliveries: dict[str, _Delivery] = {}
        self._stop = threading.Event()

    def wait(self, step: PodStep, jobs: Callable[[], Iterable[LocalJob]]) -> bool:
        """Return whether ``step`` must wait for an answer; MLflow is asked on a thread of its own."""
        if labels.ANNOTATION_ANSWER not in step.annotations:
            return False
        sweep = step.env.get(contract.ENV_SWEEP_ID, "")
        if sweep not in self._deliveries:
            of_sweep = [job for job in jobs() if job.trial and job.step.env.get(contract.ENV_SWEEP_ID) == sweep]
            if not self._look(of_sweep):
                return True
            self._deliveries[sweep] = delivery = _Delivery()
            threading.Thread(
                target=self._deliver, args=(sweep, of_sweep, delivery), name="answers", daemon=True
            ).start()
        return not self._deliveries[sweep].done.is_set()

    def news(self) -> Iterable[str]:
        """Yield in words, once for each, which answers wait for MLflow for long."""
        for delivery in self._deliveries.values():
            late = time.monotonic() > delivery.began + _TELL_AFTER_S
            if late and not delivery.told and not delivery.done.is_set():
                delivery.told = True
                yield f"the step that reads the best trial waits for MLflow: {delivery.problem}"

    def close(self) -> None:
        """Begin nothing more."""
        self._stop.set()

    def _deliver(self, sweep: str, jobs: Sequence[LocalJob], delivery: _Delivery) -> None:
        while not self._stop.is_set():
            try:
                if self._has_all(sweep, jobs):
                    delivery.done.set()
                    return
                delivery.problem = "what its trials logged is on its way"
            except Exception as error:  # noqa: BLE001 - whatever MLflow's client raises, the next try may work
                delivery.problem = shown(str(error))[:_MOST_PROBLEM]
            self._stop.wait(_AGAIN_S)

    def _has_all(self, sweep: str, jobs: Sequence[LocalJob]) -> bool:
        side = self._mlflow.needed()
        state = self._folder / "state"
        for job in jobs:
            if (state / job.trial).is_dir():
                end_untold(state / job.trial, succeeded=job.exit_code == 0)
        self._keep_printed(side, jobs)
        if not side.postman.has_brought(jobs):
            return False
        result = RunResult("", ())
        side.closing(self._folder, jobs, result).settle(sweep)
        self._mlflow.settle(_TAGS_S, hurried=False)
        return True
