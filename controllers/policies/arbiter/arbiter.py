"""The arbiter: once per round it says what each sweep may use, whatever their policies want. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import floor
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from controllers.core.model import Node, NodeKind, NodeName, TrialId
from controllers.policies.arbiter.claims import claims_of
from controllers.policies.arbiter.conduct import Conduct, Since, conduct_after, says_soon, seen_since
from controllers.policies.arbiter.demands import NOTHING, Amount, Claimant, SweepDemand, Terms, terms_of
from controllers.policies.arbiter.filling import Filling, Line
from controllers.policies.arbiter.parts import Part, Ruling
from controllers.policies.arbiter.patience import Turn, serve_first
from controllers.policies.arbiter.reasons import reason_of
from controllers.policies.arbiter.spare_cores import spare_cores

TURN_S = 30.0
"""Seconds for which a sweep may move a trial where there are fewer moves than sweeps: then others may."""


@dataclass(frozen=True, slots=True)
class ArbiterState:
    """What one round tells the next; all in seconds of the arbiter's clock.

    ``began`` says since when a trial runs, ``unkept`` since when others are meant to have its room. ``hungry`` says
    since when a sweep has had nothing though it waits, ``offered`` since when it has had room and started nothing.
    ``turns`` says which sweep of a namespace came first last, ``conduct`` how trials behaved.
    """

    began: Mapping[TrialId, Since] = field(default_factory=dict)
    unkept: Mapping[TrialId, float] = field(default_factory=dict)
    hungry: Mapping[str, float] = field(default_factory=dict)
    offered: Mapping[str, float] = field(default_factory=dict)
    turns: Mapping[str, Turn] = field(default_factory=dict)
    conduct: Conduct = field(default_factory=Conduct)


class Arbiter(BaseModel):
    """Shares a cluster out among sweeps: weighted dominant resource fairness, namespaces first.

    **Parts.** Trials get their places one after another, each time of the sweep that has the least for its weight. A
    namespace of a higher priority comes first, and so does a sweep within its namespace. What one cannot use goes to
    the others.

    **Nobody starves.** A sweep that has had nothing for ``patience`` comes first in its namespace. Where there are
    several, each that has such sweeps gets one trial's worth before all others, and the next after ``patience``.

    **Giving back.** A trial whose room others are meant to have is suspended, if it has run for ``keeps`` and does not
    end ``soon``. Nothing is suspended for a difference that would only change hands. A namespace is believed what its
    trials say of their ends as long as that comes true.

    **Deafness.** What a trial holds counts as its sweep's again, if it has not left within ``hears``.

    **Room that nobody takes.** A sweep that starts nothing for ``lapses``, though it has room, leaves it to the others
    until ``asks_again``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)

    terms: SkipValidation[Terms] = {}
    patience: float = Field(default=600.0, gt=0, description="seconds after which a sweep with nothing comes first")
    keeps: float = Field(default=300.0, ge=0, description="seconds that a trial runs before it is suspended for others")
    settles: float = Field(default=15.0, ge=0, description="seconds for which others must have a claim to its room")
    soon: float = Field(default=60.0, ge=0, description="seconds to its end within which a trial is left to end")
    hears: float = Field(default=120.0, gt=0, description="seconds within which a trial leaves that was asked to")
    lapses: float = Field(default=120.0, gt=0, description="seconds of room not taken, after which others may have it")
    asks_again: float = Field(default=600.0, gt=0, description="seconds after which the sweep may have room again")
    disruption: float = Field(
        default=0.25, gt=0, le=1, description="part of all trials that may be moving or leaving at once, always one"
    )

    def decide(
        self,
        now: float,
        sweeps: Iterable[SweepDemand],
        nodes: Sequence[Node],
        state: ArbiterState,
        kinds: Sequence[NodeKind] = (),
    ) -> Ruling[ArbiterState]:
        """Return each sweep's part; the same in whatever order sweeps, trials and nodes are given.

        Args:
            now: Seconds of a clock of the arbiter's own.
            sweeps: Those with trials that have not ended.
            nodes: What the trials of all sweeps together can have of each node.
            state: What the last round returned.
            kinds: What nodes can come.
        """
        sweeps = sorted(sweeps, key=lambda sweep: sweep.name)
        nodes = sorted(nodes, key=lambda node: node.name)
        began = seen_since(now, (t for sweep in sweeps for t in sweep.trials if t.nodes), state.began)
        conduct = conduct_after(now, sweeps, state.conduct, self.soon)
        deaf = conduct.deaf(now, self.hears)
        # A namespace that shares with nobody takes nothing from others by what its trials say.
        alone = len({s.namespace for s in sweeps}) == 1 and not terms_of(sweeps[0].namespace, self.terms).bounded

        def ends_soon(trial: Claimant) -> bool:
            return says_soon(trial, self.soon) if alone else conduct.ends_soon(trial, self.soon)

        hungry = {s.name: state.hungry.get(s.name, now) for s in sweeps if not _holds(s) and _waiting(s)}
        offered = self._still_offered(now, sweeps, state)
        lapsed = {name for name, since in offered.items() if now - since >= self.lapses}
        starving = {name: since for name, since in hungry.items() if now - since >= self.patience}
        # Of a kind without a name nobody knows whether it comes, nor how large: it is nobody's room until it has come.
        known = sorted((kind for kind in kinds if kind.name), key=lambda kind: kind.name)

        def dealt(most: Mapping[str, float] | None = None) -> tuple[Filling, dict[str, Turn]]:
            lines = [
                Line(sweep, _in_turn(sweep, began, ends_soon, lapsed=sweep.name in lapsed), starving.get(sweep.name))
                for sweep in sweeps
            ]
            filling = Filling(lines, self.terms, nodes, known, deaf, most)
            turns = serve_first(now, filling, state.turns, self.patience)
            filling.fill()
            return filling, turns

        filling, turns = dealt()
        if (uneven := filling.shares_if_uneven()) is not None:
            filling, turns = dealt(uneven)
        lines = filling.lines
        for line in lines:
            if any(room.clear and not room.new for _, room in line.given.values()):
                offered.setdefault(line.sweep.name, now)
            elif line.sweep.name not in lapsed:
                offered.pop(line.sweep.name, None)
        unkept = {t.id: state.unkept.get(t.id, now) for ln in lines for t in (*ln.unkept, *ln.over_quota)}
        budget = self._budget(lines) - len(conduct.unsteady.keys() - deaf)

        def ripe(trial: Claimant) -> bool:
            settled = now - unkept[trial.id] >= self.settles and now - began[trial.id].at >= self.keeps
            return trial.steady and settled and not ends_soon(trial)

        leaving = _leaving(filling, unkept, ripe, budget)
        parts = self._parts(now, filling, leaving, hungry, lapsed)
        for name, asks in _asks(filling, unknown=any(not kind.name and kind.more for kind in kinds)).items():
            parts[name] = replace(parts[name], asks=asks)
        return Ruling(parts, ArbiterState(began, unkept, hungry, offered, turns, conduct))

    def _still_offered(self, now: float, sweeps: Sequence[SweepDemand], state: ArbiterState) -> dict[str, float]:
        """Return since when sweeps have had room that they did not take; what starts a trial takes it."""
        known = {}
        for sweep in sweeps:
            since = state.offered.get(sweep.name)
            ran = any(t.starting or (t.nodes and t.id not in state.began) for t in sweep.trials)
            if since is not None and not ran and now - since < self.lapses + self.asks_again:
                known[sweep.name] = since
        return known

    def _budget(self, lines: Sequence[Line]) -> int:
        live = sum(bool(trial.nodes) for line in lines for trial in line.sweep.trials)
        return max(1, floor(live * self.disruption))

    def _parts(
        self,
        now: float,
        filling: Filling,
        leaving: Mapping[str, Sequence[TrialId]],
        hungry: Mapping[str, float],
        lapsed: set[str],
    ) -> dict[str, Part]:
        lines = filling.lines
        weights = self._weights(lines)
        free = {name: amount.cpu for name, amount in filling.ledger.free.items()}
        spare = spare_cores(lines, free, weights)
        claims = claims_of(filling, spare)
        moves = self._moves(now, lines)
        parts = {}
        grown: dict[str, float] = {}
        for cores in spare.values():
            for name, more in cores.items():
                grown[name] = grown.get(name, 0.0) + more
        for line in lines:
            name = line.sweep.name
            starts = frozenset(line.given)
            at_once = {trial for trial, (_, room) in line.given.items() if room.clear}
            waiting = _waiting(line.sweep)
            # One that is alone may have its pods wait at the scheduler: an autoscaler looks at these only.
            bound = bool(line.quota) or (not line.sweep.places and len(lines) > 1)
            at_gates = [trial for trial in waiting if trial.held_back and trial.id not in at_once]
            held_back = frozenset(trial.id for trial in at_gates)
            if name in lapsed or not bound:
                # Where nothing is kept for it, it may still take what nobody wants. Both within its quota.
                held_back = frozenset(filling.beyond_quota(line, at_gates))
            to_come: dict[NodeName, str] = {}
            for _, room in line.given.values():
                to_come |= room.new
            part = Part(
                has=sum((trial.has for trial in line.sweep.trials), NOTHING),
                entitled=line.amount + Amount(grown.get(name, 0.0)),
                running=sum(bool(trial.nodes) for trial in line.sweep.trials),
                waiting=len(waiting),
                starts=starts,
                held_back=held_back,
                gives_back=tuple(leaving.get(name, ())),
                claims=claims[name].meant,
                own=claims[name].own,
                moves=moves[name],
                new_nodes=dict(Counter(to_come.values())),
                waits_since=hungry.get(name),
                reason=reason_of(line, filling.ledger, lapsed=name in lapsed, gives_back=len(leaving.get(name, ()))),
            )
            parts[name] = part
        return parts

    def _weights(self, lines: Sequence[Line]) -> dict[str, float]:
        """Return each sweep's weight among all: that of its namespace, as far as it has that among its sweeps."""
        of_namespace: dict[str, float] = {}
        for line in lines:
            of_namespace[line.sweep.namespace] = of_namespace.get(line.sweep.namespace, 0.0) + line.sweep.weight
        return {
            line.sweep.name: terms_of(line.sweep.namespace, self.terms).weight
            * line.sweep.weight
            / of_namespace[line.sweep.namespace]
            for line in lines
        }

    def _moves(self, now: float, lines: Sequence[Line]) -> dict[str, int]:
        """Return how many trials of each sweep may be on the move at once; each has its turn where there are few.

        The guards of a sweep that is alone are enough.
        """
        names = [line.sweep.name for line in lines if any(trial.steady for trial in line.sweep.trials)]
        moves = {line.sweep.name: 0 for line in lines}
        if len(moves) == 1:
            return {name: len(line.sweep.trials) for line in lines for name in moves}
        if not names:
            return moves
        each, more = divmod(self._budget(lines), len(names))
        first = int(now // TURN_S) % len(names)
        for index, name in enumerate((*names[first:], *names[:first])):
            moves[name] = each + (index < more)
        return moves


def _in_turn(
    sweep: SweepDemand, began: Mapping[TrialId, Since], ends_soon: Callable[[Claimant], bool], *, lapsed: bool
) -> list[Claimant]:
    """Return a sweep's trials, the next to be served at the end: what runs, then what waits."""

    def staying(trial: Claimant) -> tuple[Any, ...]:
        since = began[trial.id].at if trial.id in began else 0.0
        return not ends_soon(trial), trial.steady, -trial.workers, -trial.each.memory, since, trial.id

    running = sorted((trial for trial in sweep.trials if trial.nodes and not trial.leaving), key=staying)
    return [*running, *(() if lapsed else _waiting(sweep))][::-1]


def _leaving(
    filling: Filling, unkept: Mapping[TrialId, float], ripe: Callable[[Claimant], bool], budget: int
) -> dict[str, list[TrialId]]:
    """Return the trials to suspend now, by sweep: those that are ``ripe``, as many as the ``budget`` leaves."""
    claimed = {name for _, name, _ in filling.promised_on()}

    def due() -> Iterable[tuple[Line, Claimant]]:
        for line in filling.lines:
            # Its room would go to its own pods at the scheduler; one that places its trials has few of them.
            useless = not line.sweep.places and any(map(_at_the_scheduler, line.sweep.trials))
            claims = [] if useless else [t for t in line.unkept if not claimed.isdisjoint(t.nodes)]
            yield from ((line, trial) for trial in (*line.over_quota, *claims) if ripe(trial))

    chosen: dict[str, list[TrialId]] = {}
    for line, trial in islice(sorted(due(), key=lambda it: (unkept[it[1].id], it[1].id)), max(0, budget)):
        chosen.setdefault(line.sweep.name, []).append(trial.id)
    return chosen


def _asks(filling: Filling, *, unknown: bool) -> dict[str, int]:
    """Return how many trials may wait at the scheduler, for each sweep that places its own and is not alone.

    Each pod there takes the next room that others give back, for whichever sweep that is meant. So there is one for
    each place that is free, or on a node that is to come. Where ``unknown`` ones may come, there is one more, of the
    sweep whose turn is next, if none waits yet.
    """
    lines = filling.lines
    if len(lines) == 1:
        return {}
    asks = {line.sweep.name: sum(room.clear for _, room in line.given.values()) for line in lines if line.sweep.places}
    tried = any(_at_the_scheduler(trial) for line in lines for trial in line.sweep.trials)
    following = filling.first_without_room()
    if unknown and not tried and following is not None and following.sweep.name in asks:
        asks[following.sweep.name] += 1
    return asks


def _waits(trial: Claimant) -> bool:
    return not trial.nodes and not trial.starting


def _at_the_scheduler(trial: Claimant) -> bool:
    return _waits(trial) and not trial.held_back


def _waiting(sweep: SweepDemand) -> list[Claimant]:
    """Return the trials that wait, in turn."""
    return sorted(filter(_waits, sweep.trials), key=lambda trial: (trial.since, trial.id))


def _holds(sweep: SweepDemand) -> bool:
    return any(trial.nodes or trial.starting for trial in sweep.trials)
