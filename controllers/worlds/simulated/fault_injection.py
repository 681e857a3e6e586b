"""Carries out the faults of a simulated cluster that have a time of their own."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import assert_never

from controllers.core.model import TrialId
from controllers.worlds.simulated.cluster import SimulatedCluster
from controllers.worlds.simulated.coming_and_going import fail_all, stop
from controllers.worlds.simulated.faults import (
    BootFault,
    Crowding,
    NodeLoss,
    ResizeDelay,
    RestoreFault,
    SpotLoss,
    StartFailure,
    TrialCrash,
    WorkerMissing,
    WorldFault,
)
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.trial_run import Stage

TimedEffect = tuple[float, Callable[[], None]]
"""When something happens, in seconds of virtual time, and what."""


def timed_effects(cluster: SimulatedCluster, faults: Sequence[WorldFault]) -> Iterator[TimedEffect]:
    """Yield what ``faults`` do to ``cluster``, and when."""
    for fault in faults:
        match fault:
            case NodeLoss():
                node = cluster.nodes[fault.node]
                yield fault.at, partial(stop, cluster, node)
                yield fault.at + fault.known_after_s, partial(_notice_loss, cluster, node)
                yield fault.at + fault.back_after_s, partial(_bring_back, cluster, node)
            case Crowding():
                yield from _crowding(cluster, fault)
            case TrialCrash():
                yield fault.at, partial(crash, cluster, fault.trial)
            case StartFailure() | WorkerMissing() | RestoreFault() | ResizeDelay():
                pass  # The cluster looks these up itself, once it comes to the attempt or resize that they befall.
            case SpotLoss() | BootFault():
                pass  # So do the provider of spot nodes and the autoscaler.
            case _:
                assert_never(fault)


def crash(cluster: SimulatedCluster, trial: TrialId) -> None:
    """End the trial's present attempt, if there is one on a node that works, as a crash or kill does."""
    run = cluster.submitted.get(trial)
    if run is None or run.stage is Stage.ENDED or not run.nodes:
        return
    if not any(cluster.nodes[node].losses for node in run.nodes):
        cluster.fail(run)


def _notice_loss(cluster: SimulatedCluster, node: NodeRun) -> None:
    if node.losses:
        node.ready, cluster.changed = False, True
        fail_all(cluster, node)


def _bring_back(cluster: SimulatedCluster, node: NodeRun) -> None:
    node.losses -= 1
    # A node that is back before anybody noticed has rebooted: its attempts are dead all the same.
    fail_all(cluster, node)
    if not node.losses:
        node.ready = cluster.changed = True
        cluster.touch(node.name, freed=True)


def _crowding(cluster: SimulatedCluster, fault: Crowding) -> Iterator[TimedEffect]:
    node, taken = cluster.nodes[fault.node], 0.0

    def come() -> None:
        nonlocal taken
        taken = min(fault.cpu, max(0.0, node.spec.cpu - node.cpu_taken))
        node.others_cpu += taken
        cluster.changed = True
        cluster.touch(node.name, freed=False)

    def leave() -> None:
        node.others_cpu -= taken
        cluster.changed = True
        cluster.touch(node.name, freed=True)

    yield fault.at, come
    yield fault.at + fault.seconds, leave
