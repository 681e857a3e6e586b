"""How much of a share that a policy wants may be asked for: what Kueue admitted, quotas and LimitRanges bound it. Pure.

A policy shares a node out; it knows no queue and no quota. So a wish for more is cut to what they allow, and one that
they allow nothing of is refused: a trial that was given less gets back what it began with, at least.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from controllers.core.actions import Resize
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.snapshot import CampaignSnapshot
from controllers.worlds.argo.meaning.trials import TrialState
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.pods import whole_milli
from controllers.worlds.argo.reading.versions import CLAIMS_RESIZE_SINCE

CLAIMS_KEEP: Final = "the API server changes no share of a pod with resource claims"


def bounded(action: Resize, state: TrialState, attempt: Attempt, seen: CampaignSnapshot) -> Resize | str:
    """Return ``action`` with as many cores as the trial's attempt may get, or why it keeps what it has."""
    if why_not := why_kept(attempt, seen.room.nodes):
        return why_not
    wanted = action.cpu
    most, why_not = min(_at_most(state, attempt, seen))
    least = max(seen.limits.least_share(worker) for worker in attempt.workers)
    cpu = max(min(wanted, most), least)
    if whole_milli(cpu) == whole_milli(wanted):
        return action
    if whole_milli(cpu) == whole_milli(attempt.share.wanted):
        return why_not if wanted > cpu else f"a LimitRange of the namespace allows no less than {least:g} cores"
    return replace(action, cpu=cpu)


def why_kept(attempt: Attempt, nodes: Mapping[str, NodeRecord]) -> str | None:
    """Return why an attempt keeps its share as long as it runs, None where it may change; ``nodes`` by name."""
    if why_not := attempt.why_no_shares:
        return why_not
    old = (node for name in attempt.nodes if (node := nodes.get(name)) and not node.resizes_with_claims)
    if attempt.claims and next(old, None):
        return f"{CLAIMS_KEEP}: it takes Kubernetes {CLAIMS_RESIZE_SINCE.major}.{CLAIMS_RESIZE_SINCE.minor}"
    return None


def _at_most(state: TrialState, attempt: Attempt, seen: CampaignSnapshot) -> list[tuple[float, str]]:
    """Return the most cores for each worker by everything that bounds them, each with the words for it."""
    bounds = [seen.limits.most_share(worker) for worker in attempt.workers]
    found = [(most, f"LimitRange {name} allows no more than {most:g} cores") for most, name in bounds if name]
    if any(worker.queueing is not None for worker in attempt.workers):
        admitted = _admitted(state, attempt)
        found.append((admitted, f"Kueue admitted it with {admitted:g} cores: its queue counts no share above that"))
    left, quota = seen.limits.rise_left()
    if quota:
        has = min(max(worker.share.wanted, worker.share.has) for worker in attempt.workers)
        most = has + left / len(attempt.workers)
        found.append((most, f"quota {quota} of the namespace has {left:g} cores left"))
    return [*found, (math.inf, "")]


def _admitted(state: TrialState, attempt: Attempt) -> float:
    """Return the cores with which Kueue admitted each worker: those that its pod was made with.

    Anybody may write on a pod that these were more, so its step's template has a say.
    """
    base, asked = (
        min(worker.base_cpu for worker in attempt.workers),
        0.0 if state.step is None else state.step.asked.cpu,
    )
    return min(base, max(asked, attempt.share.wanted)) if asked else base
