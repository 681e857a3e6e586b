"""From what a training step reports to points in the journal, CPU seconds among them."""

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mlflow_hooks import contract
from mlflow_hooks.cpu_use import CpuMeter, WaitMeter
from mlflow_hooks.journal import Journal
from mlflow_hooks.points import MOST_STEP, Point
from mlflow_hooks.state_folder import report, sendable

CPU_EVERY_S: Final = 0.25
"""CPU seconds go with an objective at most this often at first: faster steps would only fill MLflow."""
CPU_LATER_S: Final = 1.0
_CPU_PART: Final = 0.05
"""As a trial grows older they come less often, after this part of its age, until it is ``CPU_LATER_S``: by then it is
known what a step costs."""


class Metrics:
    """Logs each (key, step) once over all attempts.

    ``cpu_base`` is what earlier attempts used, in CPU seconds; ``others_cpu_s`` what the other workers of this one
    have used so far, and ``others_wait_s`` what they waited for CPUs, not a number where that is not known of all.
    """

    def __init__(self, journal: Journal, objective: str | None, cpu_base: float) -> None:
        self._journal = journal
        self._objective = objective
        self._cpu_base = cpu_base
        self._once: set[str] = set()
        self._cpu = CpuMeter()
        self._waits = WaitMeter()
        self._wait_base = journal.latest.get(contract.METRIC_CPU_WAIT, 0.0)
        self.others_cpu_s = self.others_wait_s = 0.0
        self._cpu_at = -math.inf
        self._began_at = time.monotonic()
        self._refused: set[str] = set()
        # These come only now and then.
        self._to_continue = journal.stride.keys() - {contract.METRIC_CPU_SECONDS, contract.METRIC_CPU_WAIT}

    def log(self, values: Mapping[str, Any], step: int) -> None:
        """Journal ``values`` at ``step``; what is no number, or MLflow would never take, is reported and left out."""
        if not 0 <= step < MOST_STEP:
            self._refuse("step", f"step {step} is not from 0 to 2^63 - 1: nothing is logged at it")
            return
        named = {sendable(key): value for key, value in values.items()}
        numbers = {key: number for key, value in named.items() if (number := self._number(key, value)) is not None}
        fresh = self._journal.repeats.fresh(_points(numbers, step))
        if self._to_continue:
            self._warn_of_gaps((point.key for point in fresh), step)
        objective = next((point.value for point in reversed(fresh) if point.key == self._objective), None)
        # First in the write, so that a cut never keeps an objective without them.
        beside = [] if objective is None else self._beside(objective, step)
        if fresh:
            self._journal.append([*beside, *fresh])

    def _beside(self, objective: float, step: int) -> list[Point]:
        """Return what goes with a new value of the objective, now and then."""
        extra: dict[str, float] = {}
        now = time.monotonic()
        pause = min(max(CPU_EVERY_S, _CPU_PART * (now - self._began_at)), CPU_LATER_S)
        if now >= self._cpu_at + pause:
            self._cpu_at = now
            extra |= self._cpu_use()
        if math.isfinite(objective) and self._is_first(contract.METRIC_OBJECTIVE_FIRST):
            extra[contract.METRIC_OBJECTIVE_FIRST] = objective
        return self._journal.repeats.fresh(_points(extra, step))

    def finish_steps(self) -> None:
        """Journal what is known to count only now: no step is repeated any more that an earlier attempt was killed in.

        It is called before a checkpoint, and at the end. A step of a metric may be many of the training.
        """
        if became := self._journal.repeats.finished():
            self._journal.append(became)

    def log_cpu(self, step: int) -> None:
        """Journal the CPU seconds that came to the end of training, after its last step."""
        if self._cpu_at > -math.inf and (fresh := self._journal.repeats.fresh(_points(self._cpu_use(), step))):
            self._journal.append(fresh)

    def steps_total(self, total: int, step: int) -> None:
        """Journal once how many steps there will be."""
        if self._is_first(contract.METRIC_STEPS_TOTAL):
            self._journal.append(_points({contract.METRIC_STEPS_TOTAL: float(total)}, step))

    def _is_first(self, key: str) -> bool:
        """Return whether ``key``, which is logged once, still is to be, and take note that it is."""
        first = key not in self._once and key not in self._journal.high_water
        self._once.add(key)
        return first

    def _cpu_use(self) -> dict[str, float]:
        waited = self._waits.seconds()
        used = {contract.METRIC_CPU_SECONDS: self.cpu_seconds()}
        if waited is None or math.isnan(self.others_wait_s):
            return used
        return {**used, contract.METRIC_CPU_WAIT: self._wait_base + waited + self.others_wait_s}

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the trial over all its attempts and workers."""
        before = max(self._cpu_base, self._journal.latest.get(contract.METRIC_CPU_SECONDS, 0.0))
        return before + self._cpu.seconds() + self.others_cpu_s

    def _warn_of_gaps(self, keys: Iterable[str], step: int) -> None:
        """Tell of the first key that does not go on where earlier attempts ended: its trial has lost steps."""
        for key in self._to_continue.intersection(keys):
            self._to_continue.discard(key)
            missing = self._journal.missing(key, step)
            if missing:
                lost = f"step {missing[0]} is" if len(missing) == 1 else f"steps {missing[0]} to {missing[-1]} are"
                report(
                    f"{lost} missing in the history of {key}, which goes on at step {step} after a resume:"
                    " does the training go on at t.next_step, and is each step finished only after it is trained?"
                )
                self._to_continue.clear()
                return

    def _number(self, key: str, value: Any) -> float | None:  # noqa: ANN401 - a float, a tensor, an array of one
        try:
            return float(value.item() if hasattr(value, "item") else value)  # tensors warn at float()
        except OverflowError:
            self._refuse(key, f"{key} is beyond what a number holds and is not logged")
        except (TypeError, ValueError, RuntimeError) as error:
            self._refuse(key, f"{key}={value!r} is no number ({error}) and is not logged")
        return None

    def _refuse(self, what: str, why: str) -> None:
        if what not in self._refused:
            report(why)
        self._refused.add(what)


def _points(numbers: Mapping[str, float], step: int) -> list[Point]:
    now = int(time.time() * 1000)
    return [Point(key, number, step, now) for key, number in numbers.items()]
