"""How long a faulty sweep may take at most."""

from controllers.lab.fault_search.case import Case
from controllers.lab.fault_search.controller_faults import ControllerCrash
from controllers.worlds.simulated.costs import Costs
from controllers.worlds.simulated.faults import NodeLoss, ResizeDelay, RestoreFault
from controllers.worlds.simulated.workload import NodeSpec, TrialSpec

_MOVES = 20
"""Moves of a trial that are not held to be too many; a policy may go on moving trials for as long as they run."""


_MOST_TOGETHER = 20


def latest_end_s(case: Case) -> float:
    """Return the virtual time, in seconds, by which the sweep must have ended: generous, but no more than finite.

    As if all faults passed before anything began, every trial were made as often as its retries allow and moved 20
    times, and one trial ran after the other on the slowest node that holds it.
    """
    workload, costs = case.scenario.workload, case.scenario.costs
    arrivals = max(trial.submitted_at for trial in workload.trials)
    return arrivals + _faults_s(case) + sum(_alone_s(trial, workload.nodes, costs) for trial in workload.trials)


def _alone_s(trial: TrialSpec, nodes: tuple[NodeSpec, ...], costs: Costs) -> float:
    fitting = [node for node in nodes if node.cpu >= trial.cpu and node.memory >= trial.memory]
    slowest = min(trial.speedup.speed(min(node.cpu, trial.limit)) * _speed(node) for node in fitting)
    importing = costs.start_cpu_s / min(min(node.cpu, trial.limit, 1.0) * _speed(node) for node in fitting)
    between = max(costs.retry_s, costs.next_attempt_s) + costs.leave_s + costs.grace_s + costs.heartbeat_s
    return (trial.retries + 1 + _MOVES) * (
        trial.work_s / slowest + importing + between + costs.start_s + costs.restore_s
    )


def _speed(node: NodeSpec) -> float:
    """Return the speed of a core among more trials than a case has."""
    return node.speed_of(_MOST_TOGETHER)


def _faults_s(case: Case) -> float:
    ends = [getattr(fault, "at", 0.0) + abs(getattr(fault, "seconds", 0.0)) for fault in case.faults]
    outages = [
        fault.known_after_s + fault.back_after_s
        if isinstance(fault, NodeLoss)
        else fault.down_s
        if isinstance(fault, ControllerCrash)
        else fault.delay_s
        if isinstance(fault, ResizeDelay)
        else fault.seconds
        if isinstance(fault, RestoreFault)
        else 0.0
        for fault in case.faults
    ]
    return max(ends, default=0.0) + sum(outages)
