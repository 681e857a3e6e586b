"""Nodes of a simulated cluster that come, are drained, stop and go, and what becomes of the attempts there."""

from controllers.worlds.simulated.cluster import SimulatedCluster
from controllers.worlds.simulated.events import ClusterEvent, ClusterEventKind
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.trial_run import Rest, TrialRun


def join(cluster: SimulatedCluster, node: NodeRun) -> None:
    """Let ``node`` take trials from now on."""
    cluster.nodes[node.name] = node
    cluster.sharing.note(node.name)
    cluster.scheduler.came(node.name)
    for at, _ in node.spec.supply:
        if at > cluster.now:
            cluster.queue.put(at, ClusterEvent(ClusterEventKind.SUPPLIED, node.name))
    cluster.changed = True


def remove(cluster: SimulatedCluster, node: NodeRun) -> None:
    """Let ``node``, on which nothing is, be gone; what was on its way there goes wherever it finds room."""
    divert(cluster, node)
    node.meter.end(cluster.now)
    del cluster.nodes[node.name]
    cluster.sharing.forget(node.name)
    cluster.scheduler.gone(node.name)
    cluster.changed = True


def divert(cluster: SimulatedCluster, node: NodeRun) -> None:
    """Let what is on its way to ``node`` go wherever it finds room."""
    for run in list(node.expected.values()):
        cluster.cancel_reservation(run)
        if run.leaves:
            run.rest = Rest.ANYWHERE
        run.targets = ()
        run.change()


def drain(cluster: SimulatedCluster, node: NodeRun) -> None:
    """Tell all attempts on ``node`` to leave, as an eviction does: the next ones go wherever they find room."""
    for run in list(node.runs.values()):
        _evict(cluster, run)


def _evict(cluster: SimulatedCluster, run: TrialRun) -> None:
    if run.leaves:
        return
    if run.runs:
        run.rest = Rest.ANYWHERE
        cluster.ask_to_leave(run)
    else:  # Its program has not begun: there is nothing to save, and nobody counts that as a failure.
        run.evictions += 1
        run.targets = ()
        cluster.go_away(run, cluster.costs.next_attempt_s)


def stop(cluster: SimulatedCluster, node: NodeRun) -> None:
    """Let ``node`` stop, and its attempts with it; nobody knows yet."""
    # Losses are counted, since two faults may take the same node: it works again once both are over.
    node.losses += 1
    for run in node.runs.values():
        cluster.halt(run)
        run.void()
        run.silent = True


def fail_all(cluster: SimulatedCluster, node: NodeRun) -> None:
    """End the attempts on ``node``, as its loss does once it is known."""
    for run in list(node.runs.values()):
        cluster.fail(run)
    cluster.touch(node.name, freed=False)
