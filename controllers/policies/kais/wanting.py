"""What the network wants of one look: places, moves and shares. Apart from the policy, as it needs numpy. Pure."""

import statistics
from typing import Final

from controllers.core.actions import Assessment, Proposal
from controllers.core.model import NodeName, Phase, Snapshot, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import usable
from controllers.policies.kais.choosing import Chooser
from controllers.policies.kais.dispatch import places, starting_order, why_untrained
from controllers.policies.kais.moving import moves as moves_of
from controllers.policies.kais.network import Embedding
from controllers.policies.kais.scene import scene
from controllers.policies.kais.sharing import resizes, shares
from controllers.policies.kais.state import MOST_MOVES, KaisState, LookSettings
from controllers.policies.kais.weights import Trained
from controllers.policies.kit.arrivals import arriving_until
from controllers.policies.kit.asked_moves import with_destinations
from controllers.policies.kit.shares import shared_nodes, shrinks_first
from controllers.policies.kit.work_left import estimate_work, scaling_of

MOVE_COST: Final = 5.0
"""Seconds that a move takes, until those of the sweep tell."""
PROBE: Final = 60.0
"""Seconds for which a new trial goes ahead to make a report."""


def wishes(  # noqa: PLR0913 - what a look goes by
    settings: LookSettings,
    trained: Trained,
    chooser: Chooser,
    snapshot: Snapshot,
    state: KaisState,
    changed: set[NodeName],
    *,
    due: bool,
) -> tuple[list[Proposal], dict[TrialId, Assessment]]:
    """Return what the network wants, and what it goes by of trials whose length is not known.

    Args:
        settings: What it goes by.
        trained: The network, and what it was trained on.
        chooser: Chooses by the network's scores.
        snapshot: What is to be decided on.
        state: What was measured, placed, moved and submitted so far.
        changed: The nodes whose trials are not those of the last decision.
        due: Whether it is time to look for moves, and at the shares of all nodes.
    """
    known = state.measured
    estimates = estimate_work(snapshot, known, scaling_of(known).power)
    arriving = snapshot.now < arriving_until(state.submitted) - CLOCK_SLACK
    heading = with_destinations(snapshot, state.moves.asked)
    seen = scene(heading, estimates, state.starting, arriving=arriving)
    if seen is None:
        return [], {}
    embedding = Embedding(trained.network, seen)
    waiting = starting_order(snapshot, estimates, float(seen.cores.max()))
    proposals = list(places(waiting, embedding, trained, chooser))
    # What is old says little of where a trial stands by now, so it moves no trial and changes no share.
    fresh = {trial.id for trial in snapshot.unended if usable(trial.progress, snapshot.now, settings.oldest)}
    if due:
        plain = (trial for trial in snapshot.unended if trial.id in fresh and not why_untrained(trial))
        movable = {trial.id for trial in plain if state.moves.allows(trial, MOST_MOVES)}
        live = sum(trial.live for trial in snapshot.unended)
        room = max(1, live // 4) - sum(trial.phase is Phase.MOVING for trial in snapshot.unended)
        cost = statistics.fmean((MOVE_COST, MOVE_COST, *known.moves))
        proposals += moves_of(movable, room, embedding, trained, chooser, cost)
    nodes = {
        name: node
        for name, node in shared_nodes(snapshot).items()
        if (name in changed or (due and not fresh.isdisjoint(node.names)))
        and not any(why_untrained(trial) for trial in node.members)
    }
    new = {
        name
        for name in estimates
        if known.trials[name].newest is None and snapshot.now < known.trials[name].running_since + PROBE
    }
    sizes: list[Proposal] = []
    for name, (why, parts) in shares(nodes, estimates, new, embedding, trained, chooser).items():
        sizes += resizes(nodes[name], parts, why, settings.min_change, settings.min_cpu)
    proposals += shrinks_first(sizes, snapshot)
    return proposals, {
        name: Assessment(outlook=f"its length is not known yet: estimated by {estimate.source}")
        for name, estimate in estimates.items()
        if not estimate.known
    }
