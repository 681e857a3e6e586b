"""Nodes that stood idle: for which part of a run no trial was on them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hera_specon import formatting
from hera_specon.records.run_folder import PolicyRun

_LEAST: Final = 0.05
"""Part of a run below which a node is not named: trials start and end."""
_MOST_NAMED: Final = 8
_MOST_NODES: Final = 10_000


@dataclass(frozen=True, slots=True)
class IdleNode:
    """A node, and for which part of the run it held no trial, from 0 to 1."""

    name: str
    part: float


def idle_nodes(run: PolicyRun, names: Iterable[str] = ()) -> list[IdleNode]:
    """Return the nodes that held no trial for a while, the idlest first.

    Args:
        run: of a policy.
        names: nodes of the run that the timeline may not know, as they never held a trial.
    """
    end = run.history.end
    if end <= 0:
        return []
    found = []
    for name in dict.fromkeys([*names, *run.history.nodes()]):
        held = [(s.start, s.end) for s in run.history.all_stretches() if name in s.places]
        part = 1.0 - _covered(held) / end
        if part >= _LEAST:
            found.append(IdleNode(name, part))
    return sorted(found, key=lambda node: (-node.part, formatting.natural(node.name)))


def idle_line(run: PolicyRun, names: Iterable[str] = ()) -> str:
    """Say which nodes stood idle, and for how long; empty where none did."""
    nodes = idle_nodes(run, names)
    told = [f"{node.name} for {100 * node.part:.0f} %" for node in nodes[:_MOST_NAMED]]
    more = f" and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
    return f"{', '.join(told)}{more}" if told else ""


def known_nodes(about: Mapping[str, Any]) -> list[str]:
    """Return the nodes that a run's settings name: those of this machine by their number, others by name."""
    nodes = about.get("nodes")
    if isinstance(nodes, Mapping):
        return [str(name) for name in nodes]
    count = min(int(nodes), _MOST_NODES) if isinstance(nodes, int | float) else 0
    return [f"node-{number:0{len(str(count))}d}" for number in range(1, count + 1)]


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Return how long at least one of ``spans`` lasts."""
    covered, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered
