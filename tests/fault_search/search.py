"""Faulty runs by the thousand, over all cores."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import islice

from controllers.lab.worker_pool import worker_pool
from mlflow_hooks.system import cores_here
from tests.fault_search.case import Case
from tests.fault_search.faulty_run import CaseResult, Violation, run_case
from tests.fault_search.minimising import minimise
from tests.fault_search.random_cases import draw_case

_BATCH = 25
_MINIMISING_S = 120.0


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A run that broke an invariant: its seed, and the smallest case that still breaks it."""

    seed: int
    case: Case
    violation: Violation


@dataclass(frozen=True, slots=True)
class Batch:
    """Totals of some runs, and the counterexamples among them."""

    runs: int
    events: int
    ticks: int
    moves: int
    crashes: int
    counterexamples: tuple[Counterexample, ...]


def try_seed(seed: int, policies: Sequence[str]) -> tuple[CaseResult, Counterexample | None]:
    """Run the case of ``seed`` under the policy whose turn it is; minimise a failing one."""
    case = draw_case(seed, policies[seed % len(policies)])
    result = run_case(case)
    if result.violation is None:
        return result, None
    return result, smallest(seed, case, result.violation)


def smallest(
    seed: int, case: Case, violation: Violation, run: Callable[[Case], CaseResult] = run_case
) -> Counterexample:
    """Return the smallest part of ``case`` that breaks the same invariant, and how; the smallest found in two minutes.

    Trying a sweep that never ends takes long, and hundreds may have to be tried.
    """
    until = time.monotonic() + _MINIMISING_S

    def same(smaller: Case) -> bool:
        if time.monotonic() > until:
            return False
        again = run(smaller).violation
        return again is not None and again.invariant == violation.invariant

    least = minimise(case, same)
    return Counterexample(seed, least, run(least).violation or violation)


def search(
    seeds: range, policies: Sequence[str], minutes: float | None, processes: int | None = None
) -> Iterator[Batch]:
    """Yield the totals of the runs of ``seeds``, batch by batch, until all are done or ``minutes`` have gone.

    Args:
        seeds: of the cases; the n-th policy has its turn at every seed that is n modulo their number.
        policies: as people type them.
        minutes: None for as long as it takes.
        processes: None for one on each core.
    """
    until = None if minutes is None else time.monotonic() + 60 * minutes
    batches = (seeds[first : first + _BATCH] for first in range(0, len(seeds), _BATCH))
    workers = processes or cores_here()
    with worker_pool(workers) as pool:
        running: set[Future[Batch]] = set()
        while True:
            in_time = until is None or time.monotonic() < until
            wanted = islice(batches, 2 * workers - len(running)) if in_time else ()
            running |= {pool.submit(_run_batch, batch, tuple(policies)) for batch in wanted}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)


def _run_batch(seeds: range, policies: Sequence[str]) -> Batch:
    tried = [try_seed(seed, policies) for seed in seeds]
    results = [result for result, _ in tried]
    return Batch(
        runs=len(results),
        events=sum(result.events for result in results),
        ticks=sum(result.ticks for result in results),
        moves=sum(result.moves for result in results),
        crashes=sum(result.crashes for result in results),
        counterexamples=tuple(counterexample for _, counterexample in tried if counterexample is not None),
    )
