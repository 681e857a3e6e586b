"""Which kinds of nodes can come, how long they take, and whether to believe that they do. Pure.

A world tells of the kinds that it sees or that an owner gave. A kind stays known when its last node has gone. Its boots
are timed, from the first trial that asked for a node until one was ready. Where a trial asks and no node comes, every
kind that would hold it loses trust: none is asked for during a pause, then one at a time. Each pause is twice as long
as the one before. A node that comes after all ends that at once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from controllers.core.model import Node, NodeKind, NodeName, Trial, TrialId

MOST_KINDS: Final = 64
"""Kinds that are remembered."""
MOST_BOOTS: Final = 9
PATIENCE_S: Final = 600.0
"""Seconds for which a node may take to come at least; also the first pause of a kind whose nodes do not come."""
PATIENCE_BOOTS: Final = 3.0
"""It may take this many times as long as others of its kind, if that is longer."""
MOST_PAUSE_S: Final = 4 * 3600.0
MOST_BOOT_S: Final = 1800.0
"""A trial that has asked for longer waits for something else: a node that comes then does not come for it."""
_MOST_BYTES: Final = 2.0**63


@dataclass(frozen=True, slots=True)
class Trust:
    """What was seen of a kind: the newest ``boots`` in seconds, and when a node of it last ``came_at``.

    None is asked for before ``again_at``. ``pause_s`` is how long that pause was, 0 while the kind is trusted.
    """

    boots: tuple[float, ...] = ()
    came_at: float = 0.0
    again_at: float = 0.0
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """The ``kinds`` told of so far, what is thought of each by name, and since when trials ask for a node."""

    kinds: tuple[NodeKind, ...] = ()
    trust: Mapping[str, Trust] = field(default_factory=dict)
    let_go: Mapping[TrialId, float] = field(default_factory=dict)

    def with_let_go(self, trial: TrialId, now: float) -> "KnownKinds":
        """Return this with a trial that was just let go without a node."""
        return replace(self, let_go={**self.let_go, trial: now})


def kinds_after(
    now: float,
    trials: Iterable[Trial],
    came: Sequence[Node],
    told: Sequence[NodeKind],
    before: KnownKinds,
) -> KnownKinds:
    """Return what is known after a look.

    Args:
        now: Seconds of the sweep's clock.
        trials: Those that have not ended.
        came: The nodes that became ready since the look before, for the first time.
        told: The kinds that the world tells of now.
        before: What was known after the look before.
    """
    asking = {trial.id: trial for trial in trials if trial.id in before.let_go and trial.starts}
    let_go = {name: since for name, since in before.let_go.items() if name in asking}
    kinds = _remembered(told, before.kinds)
    waited = [now - at for at in before.let_go.values() if 0 <= now - at <= MOST_BOOT_S]
    boot = (max(waited),) if waited else ()
    trust = {}
    for kind in (*kinds, *(kind for kind in told if not kind.name)):
        known = before.trust.get(kind.name, Trust())
        if any(node.kind == kind.name or not kind.name for node in came):
            trust[kind.name] = Trust((*known.boots, *boot)[-MOST_BOOTS:], came_at=now)
        else:
            since = [let_go[name] for name, trial in asking.items() if kind.holds(trial)]
            trust[kind.name] = _doubt(known, since, now, kind.boots_s)
    return KnownKinds(kinds, {name: one for name, one in trust.items() if one != Trust()}, let_go)


def believed_kinds(told: Sequence[NodeKind], known: KnownKinds, now: float) -> tuple[NodeKind, ...]:
    """Return the kinds told of and those remembered, each as far as it is believed at ``now``."""
    here = {kind.name for kind in told}
    # Nobody tells any more how many there can be.
    remembered = (replace(kind, more=1.0, coming=0) for kind in known.kinds if kind.name not in here)
    return tuple(_believed(kind, known.trust.get(kind.name, Trust()), now) for kind in (*told, *remembered))


def patience(boots_s: float) -> float:
    """Return for how many seconds a node may take to come that takes ``boots_s`` as a rule."""
    return max(PATIENCE_S, PATIENCE_BOOTS * boots_s)


def came_since(nodes: Iterable[Node], before: Collection[NodeName] | None) -> tuple[list[Node], frozenset[NodeName]]:
    """Return the nodes that are ready and were not there ``before``, and those to compare with at the next look.

    A node that was ready once and still is there does not come again. At the first look, ``before`` is None.
    """
    known = None if before is None else frozenset(before)
    there = frozenset(node.name for node in nodes if node.ready or (known is not None and node.name in known))
    return [node for node in nodes if known is not None and node.name in there - known], there


def _remembered(told: Iterable[NodeKind], before: Iterable[NodeKind]) -> tuple[NodeKind, ...]:
    """Return the kinds to remember, those told of now first; numbers that JSON has none for are cut."""
    kinds = {
        kind.name: replace(kind, memory=min(kind.memory, _MOST_BYTES), more=0.0, coming=0) for kind in told if kind.name
    }
    for kind in before:
        kinds.setdefault(kind.name, kind)
    return tuple(sorted(list(kinds.values())[:MOST_KINDS], key=lambda kind: kind.name))


def _doubt(known: Trust, asked_at: Iterable[float], now: float, boots_s: float) -> Trust:
    """Return the trust in a kind whose nodes have not come, though trials have asked for one since ``asked_at``."""
    most = patience(median(known.boots) if known.boots else boots_s)
    if not any(now - max(at, known.came_at, known.again_at) > most for at in asked_at):
        return known
    pause = min(MOST_PAUSE_S, max(PATIENCE_S, 2 * known.pause_s))
    return replace(known, again_at=now + pause, pause_s=pause)


def _believed(kind: NodeKind, trust: Trust, now: float) -> NodeKind:
    boots_s = median(trust.boots) if trust.boots else kind.boots_s
    if trust.pause_s:
        return replace(kind, boots_s=boots_s, more=0.0 if now < trust.again_at else min(1.0, kind.more))
    return replace(kind, boots_s=boots_s)
