"""Minimises a case that breaks an invariant: the smallest part of it that still breaks the same one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, TypeVar

from controllers.core.stop_rules import NO_RULES
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.workload import Workload
from tests.fault_search.case import Case
from tests.fault_search.several_sweeps import NOT_SHARED, without_owners_of_none

T = TypeVar("T")


def minimise(case: Case, breaks: Callable[[Case], bool]) -> Case:
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

    def still_breaks(kept: Sequence[T]) -> bool:
        try:
            return breaks(having(case, kept))
        except WorkloadError:
            return False  # Nothing is left to run, such as a workload without a node.

    left, pieces = list(parts(case)), 2
    while left:
        smaller = next((kept for kept in _without_a_piece(left, pieces) if still_breaks(kept)), None)
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


def _with_trials(case: Case, trials: Sequence[Any]) -> Case:
    return _with_workload(case, replace(case.scenario.workload, trials=tuple(trials)))


def _with_nodes(case: Case, nodes: Sequence[Any]) -> Case:
    return _with_workload(case, replace(case.scenario.workload, nodes=tuple(nodes)))


def _with_groups(case: Case, groups: Sequence[Any]) -> Case:
    return _with_workload(case, replace(case.scenario.workload, groups=tuple(groups)))


def _with_reports(case: Case, reports: Sequence[Any]) -> Case:
    trials = case.scenario.workload.trials
    kept = {trial.id: tuple(report for name, report in reports if name == trial.id) for trial in trials}
    return _with_trials(case, [replace(trial, reports=kept[trial.id]) for trial in trials])


def _with_workload(case: Case, workload: Workload) -> Case:
    """Return ``case`` with another workload, and only those pins and faults that are about what it has."""
    trials = {trial.id for trial in workload.trials}
    nodes = {node.name for node in workload.nodes}
    groups = {group.name for group in workload.groups}
    pinned = {trial: node for trial, node in case.scenario.pinned.items() if trial in trials and node in nodes}
    faults = tuple(
        fault
        for fault in case.faults
        if getattr(fault, "trial", None) in {None, *trials}
        and getattr(fault, "node", None) in {None, *nodes}
        and getattr(fault, "group", None) in {None, *groups}
    )
    sharing = without_owners_of_none(case.sharing, frozenset(trial.sweep for trial in workload.trials))
    scenario = replace(case.scenario, workload=workload, pinned=pinned)
    return replace(case, scenario=scenario, faults=faults, sharing=sharing)


def _with_sharing(case: Case, sharing: Sequence[Any]) -> Case:
    return replace(case, sharing=next(iter(sharing), NOT_SHARED))


_PARTS: Final[tuple[tuple[Callable[[Case], Sequence[Any]], Callable[[Case, Sequence[Any]], Case]], ...]] = (
    (
        lambda case: [case.stops] if case.stops else [],
        lambda case, stops: replace(case, stops=next(iter(stops), NO_RULES)),
    ),
    (lambda case: [case.sharing] if case.sharing else [], _with_sharing),
    (lambda case: case.faults, lambda case, faults: replace(case, faults=tuple(faults))),
    (lambda case: case.scenario.workload.trials, _with_trials),
    (lambda case: case.scenario.workload.nodes, _with_nodes),
    (lambda case: case.scenario.workload.groups, _with_groups),
    (
        lambda case: [(trial.id, report) for trial in case.scenario.workload.trials for report in trial.reports],
        _with_reports,
    ),
)
"""What a case has many of: how to get them, and the case with other ones."""
