"""Whether this process is alive (worth keeping) and ready (able to lead)."""

import logging
import threading
from collections.abc import Callable
from typing import Final, Self

STALE_VIEWS_OF_A_LIFE: Final = 4
"""So many times the age at which a view is too old to act on, it is old enough to start the process anew."""
_LEAST_PATIENCE_S = 60.0
_UNASKED = "it has not been asked yet"
_LOG = logging.getLogger(__name__)


class Vitals:
    """Judges what the controller last did and saw.

    Args:
        clock: seconds that never go back.
        stale_after: age in seconds at which the view of the cluster is too old to act on.
        synced: whether the cluster has been seen whole.
        age: seconds since the API server was last heard.
        mlflow_problem: why MLflow does not answer, None where it does.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        stale_after: float,
        synced: Callable[[], bool],
        age: Callable[[], float],
        mlflow_problem: Callable[[], str | None],
    ) -> None:
        self._clock = clock
        self._patience = max(_LEAST_PATIENCE_S, STALE_VIEWS_OF_A_LIFE * stale_after)
        self._synced = synced
        self._age = age
        self._mlflow_problem = mlflow_problem
        self._looped_at = clock()

    def looped(self) -> None:
        """Take note that the loop came round."""
        self._looped_at = self._clock()

    def dead(self) -> str | None:
        """Return why this process should be started anew, None if it should not."""
        idle, age = self._clock() - self._looped_at, self._age()
        if idle > self._patience:
            return f"the loop last came round {idle:.0f} s ago, bound {self._patience:g} s"
        if age > self._patience:
            return f"the API server was last heard {age:.0f} s ago, bound {self._patience:g} s"
        return None

    def unready(self) -> str | None:
        """Return what is missing before this process could lead, None if nothing is."""
        if not self._synced():
            return "the cluster has not been seen whole yet"
        problem = self._mlflow_problem()
        return f"MLflow does not answer: {problem}" if problem else self.dead()


class MlflowProbe:
    """Asks MLflow every now and then whether it is there, on a thread of its own.

    Args:
        ask: returns why it does not answer, None where it does.
        told: called with whether it is up, after every question.
        period_s: seconds between two questions.
    """

    def __init__(self, ask: Callable[[], str | None], told: Callable[[bool], None], period_s: float) -> None:
        self._ask = ask
        self._told = told
        self._period_s = period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlflow-probe", daemon=True)
        self.problem: str | None = _UNASKED

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=6)

    def ask_once(self) -> None:
        """Ask now."""
        before, self.problem = self.problem, self._ask()
        if self.problem is not None and before in {None, _UNASKED}:
            _LOG.warning("MLflow does not answer; decisions wait for metrics: %s", self.problem)
        elif self.problem is None and before is not None:
            _LOG.info("MLflow answers")
        self._told(self.problem is None)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.ask_once()
            self._stop.wait(self._period_s)
