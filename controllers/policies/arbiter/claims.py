"""What of each node is meant for which sweep, and how much of that the others are shown. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.core.model import NodeName
from controllers.policies.arbiter.demands import NOTHING, Amount
from controllers.policies.arbiter.filling import Filling, Line
from controllers.policies.arbiter.spare_cores import cores_now

_ByNode = dict[NodeName, Amount]


@dataclass(slots=True)
class SweepClaims:
    """What is ``meant`` for anybody of each node and not yet had, as far as a sweep must heed it, and its ``own``."""

    meant: Mapping[NodeName, Amount]
    own: _ByNode = field(default_factory=dict)


def claims_of(filling: Filling, spare: Mapping[NodeName, Mapping[str, float]]) -> dict[str, SweepClaims]:
    """Return the claims by sweep.

    Where a trial has room that is free, no claim of another namespace to what is yet to be given back there keeps it
    from that.

    Args:
        filling: What was dealt out.
        spare: The cores beyond requests that each sweep may have of each node.
    """
    everybody: _ByNode = {}
    claims = {line.sweep.name: SweepClaims(everybody) for line in filling.lines}

    def claim(name: str, node: NodeName, amount: Amount) -> None:
        _add(claims[name].own, node, amount)
        _add(everybody, node, amount)

    for line, node, amount in filling.promised_on():
        claim(line.sweep.name, node, amount)
    for line in filling.lines:
        for node, cores in _shrunk(line, spare).items():
            claim(line.sweep.name, node, Amount(cores))
    owed = _owed(filling)
    for line in filling.lines:
        own = claims[line.sweep.name].own
        less = {}
        for node, clear in _clear(line).items():
            waits = sum((owed[node][name] for name in owed.get(node, ()) if name != line.sweep.namespace), NOTHING)
            others, room = everybody[node] - own[node], filling.ledger.unused[node] - clear
            if waits != NOTHING and (over := _least((others - room).positive(), waits)) != NOTHING:
                less[node] = everybody[node] - over
        if less:
            claims[line.sweep.name].meant = everybody | less
    return claims


def _shrunk(line: Line, spare: Mapping[NodeName, Mapping[str, float]]) -> dict[NodeName, float]:
    """Return the cores that trials of a sweep lack whose shares its policy shrank: theirs, though others have grown."""
    asked: dict[NodeName, float] = {}
    for trial in line.kept if line.sweep.grows else ():
        for node in trial.nodes:
            asked[node] = asked.get(node, 0.0) + trial.each.cpu
    now = cores_now(line.sweep) if asked else {}
    lacks = {
        node: cores + spare.get(node, {}).get(line.sweep.name, 0.0) - now.get(node, 0.0)
        for node, cores in asked.items()
        if node in spare
    }
    return {node: cores for node, cores in lacks.items() if cores > 0}


def _clear(line: Line) -> _ByNode:
    """Return what a sweep is given of nodes where nothing has to leave first."""
    clear: _ByNode = {}
    for trial, room in line.given.values():
        for node in room.nodes if room.clear else ():
            _add(clear, node, trial.each)
    return clear


def _owed(filling: Filling) -> dict[NodeName, dict[str, Amount]]:
    """Return what namespaces are promised of each node that others must leave first."""
    owed: dict[NodeName, dict[str, Amount]] = {}
    for line in filling.lines:
        for trial, room in line.given.values():
            for node in () if room.clear else room.nodes:
                of_node = owed.setdefault(node, {})
                of_node[line.sweep.namespace] = of_node.get(line.sweep.namespace, NOTHING) + trial.each
    return owed


def _add(amounts: _ByNode, node: NodeName, amount: Amount) -> None:
    amounts[node] = amounts.get(node, NOTHING) + amount


def _least(one: Amount, other: Amount) -> Amount:
    """Return the lesser of each resource."""
    return (one - (one - other).positive()).positive()
