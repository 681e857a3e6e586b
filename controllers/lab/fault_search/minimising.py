"""Makes a case that breaks an invariant as small as it gets while it still breaks the same one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from controllers.lab.fault_search.case import Case
from controllers.worlds.simulated.workload import Workload, WorkloadError

T = TypeVar("T")


def minimised(case: Case, breaks: Callable[[Case], bool]) -> Case:
    """Return a part of ``case`` that still ``breaks``, and would not with any one trial, node, fault or report less.

    Delta debugging (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002,
    algorithm ddmin) over each of these in turn, until none of them gets any smaller.
    """
    while True:
        smaller = case
        for parts, having in _PARTS:
            smaller = _least(smaller, parts, having, breaks)
        if smaller == case:
            return case
        case = smaller


def _least(
    case: Case,
    parts: Callable[[Case], Sequence[T]],
    having: Callable[[Case, Sequence[T]], Case],
    breaks: Callable[[Case], bool],
) -> Case:
    left, pieces = list(parts(case)), 2
    while left:
        smaller = next((kept for kept in _without_a_piece(left, pieces) if _still(case, having, kept, breaks)), None)
        if smaller is not None:
            left, pieces = smaller, max(2, pieces - 1)
        elif pieces >= len(left):
            break
        else:
            pieces = min(len(left), pieces * 2)
    return having(case, left)


def _without_a_piece(whole: Sequence[T], pieces: int) -> Iterator[list[T]]:
    edges = [len(whole) * number // pieces for number in range(pieces + 1)]
    for begin, end in pairwise(edges):
        if begin < end:
            yield [*whole[:begin], *whole[end:]]


def _still(
    case: Case, having: Callable[[Case, Sequence[Any]], Case], kept: Sequence[Any], breaks: Callable[[Case], bool]
) -> bool:
    try:
        return breaks(having(case, kept))
    except WorkloadError:
        return False


def _faults(case: Case) -> Sequence[Any]:
    return case.faults


def _with_faults(case: Case, faults: Sequence[Any]) -> Case:
    return replace(case, faults=tuple(faults))


def _trials(case: Case) -> Sequence[Any]:
    return case.scenario.workload.trials


def _with_trials(case: Case, trials: Sequence[Any]) -> Case:
    return _of(case, Workload(tuple(trials), case.scenario.workload.nodes))


def _reports(case: Case) -> Sequence[Any]:
    return [(trial.id, report) for trial in case.scenario.workload.trials for report in trial.reports]


def _with_reports(case: Case, reports: Sequence[Any]) -> Case:
    return _with_trials(
        case,
        [
            replace(trial, reports=tuple(report for name, report in reports if name == trial.id))
            for trial in case.scenario.workload.trials
        ],
    )


def _nodes(case: Case) -> Sequence[Any]:
    return case.scenario.workload.nodes


def _with_nodes(case: Case, nodes: Sequence[Any]) -> Case:
    return _of(case, Workload(case.scenario.workload.trials, tuple(nodes)))


def _of(case: Case, workload: Workload) -> Case:
    """Return ``case`` with another workload, and only those pins and faults that are about what it has."""
    trials = {trial.id for trial in workload.trials}
    nodes = {node.name for node in workload.nodes}
    pinned = {trial: node for trial, node in case.scenario.pinned.items() if trial in trials and node in nodes}
    faults = tuple(
        fault
        for fault in case.faults
        if getattr(fault, "trial", None) in {None, *trials} and getattr(fault, "node", None) in {None, *nodes}
    )
    return replace(case, scenario=replace(case.scenario, workload=workload, pinned=pinned), faults=faults)


_PARTS = ((_faults, _with_faults), (_trials, _with_trials), (_nodes, _with_nodes), (_reports, _with_reports))
