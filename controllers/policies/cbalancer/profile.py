"""What C-Balancer measures of each trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controllers.core.model import Node, NodeName, Snapshot, Trial, TrialId
from controllers.policies.kit.step_times import StepMemo, timed

BUSY = 0.95
"""Part of a node's cores in use from which on it is taken to hold its trials back."""
LEFT_UNUSED = 0.9
"""A trial that uses less than this part of its fair share is taken to want no more."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One trial: its step times, the cores it can use (None until seen), its least core seconds of a step, its wear."""

    steps: StepMemo = field(default_factory=StepMemo)
    appetite: float | None = None
    least: float | None = None
    wear: float = 1.0


def profiled(snapshot: Snapshot, profiles: Mapping[TrialId, Profile], stale_after: float) -> dict[TrialId, Profile]:
    """Return the profiles of the trials that have not ended, after a look at their newest reports.

    Args:
        snapshot: What is there.
        profiles: As this returned them last.
        stale_after: Seconds after which a report came too late to measure by.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    fair = fair_shares(snapshot, nodes)
    trials = {trial.id: trial for trial in snapshot.trials}
    memos = timed(snapshot, {name: profile.steps for name, profile in profiles.items()}, stale_after)
    return {
        name: _updated(profiles.get(name, Profile()), memo, _node(trials[name], nodes), fair[name])
        for name, memo in memos.items()
    }


def fair_shares(snapshot: Snapshot, nodes: Mapping[NodeName, Node]) -> dict[TrialId, float]:
    """Return the cores that each trial has a right to on its node while all want more: in proportion to its request."""
    requested: dict[NodeName, float] = {}
    for trial in sorted(snapshot.trials, key=lambda trial: trial.id):
        if trial.live and trial.node is not None:
            requested[trial.node] = requested.get(trial.node, 0.0) + trial.cpu
    return {trial.id: _part(trial, nodes, requested) for trial in snapshot.trials}


def _part(trial: Trial, nodes: Mapping[NodeName, Node], requested: Mapping[NodeName, float]) -> float:
    node = _node(trial, nodes)
    if node is None or not requested.get(node.name):
        return 0.0
    return node.cpu * trial.cpu / requested[node.name]


def _node(trial: Trial, nodes: Mapping[NodeName, Node]) -> Node | None:
    return None if trial.node is None else nodes.get(trial.node)


def _updated(profile: Profile, memo: StepMemo, node: Node | None, fair: float) -> Profile:
    profile, known = replace(profile, steps=memo), profile.steps
    if memo.latest is None or memo == known or node is None:
        return profile
    work = memo.latest.core_seconds
    least = work if profile.least is None else min(profile.least, work)
    free = node.cpu_used < BUSY * node.cpu or memo.latest.cores < LEFT_UNUSED * fair
    appetite = memo.latest.cores if free else profile.appetite
    return replace(profile, appetite=appetite, least=least, wear=work / least)
