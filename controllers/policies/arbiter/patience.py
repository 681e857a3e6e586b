"""Who comes before all others because it has had nothing for long: a namespace at a time, then a sweep within it. Pure.

That many sweeps of a namespace starve gives it no more than if one did: one trial's worth, and the next only after as
long again. Whose turn it is goes round among its sweeps, so that none waits behind one that does not take its turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.policies.arbiter.filling import Filling, Line


@dataclass(frozen=True, slots=True)
class Turn:
    """The sweep of a namespace that came first last, which had had nothing since ``since``, and ``at`` until when."""

    since: float
    sweep: str
    at: float


def serve_first(now: float, filling: Filling, turns: Mapping[str, Turn], patience: float) -> dict[str, Turn]:
    """Give one trial's worth to each namespace whose turn it is; return whose turn that was.

    Among the sweeps of one namespace, those that have had nothing come first in any case.

    Args:
        now: Seconds of the arbiter's clock.
        filling: What is dealt out.
        turns: What was returned before, by namespace.
        patience: Seconds between two turns of a namespace.
    """
    lines: dict[str, list[Line]] = {}
    for line in filling.lines:
        lines.setdefault(line.sweep.namespace, []).append(line)
    kept = {name: turn for name, turn in turns.items() if name in lines}
    if len(lines) == 1:
        return kept

    def rank(name: str) -> tuple[float, str]:
        return (kept[name].at if name in kept else min(map(_since, starving[name]))), name

    starving = {name: found for name, of in lines.items() if (found := [line for line in of if line.starves])}
    for name in sorted(starving, key=rank):
        for line in _in_turn(now, starving[name], kept.get(name), patience):
            if _serve(filling, line):
                kept[name] = Turn(_since(line), line.sweep.name, now)
                break
    return kept


def _in_turn(now: float, starving: list[Line], last: Turn | None, patience: float) -> list[Line]:
    """Return the sweeps that may come first now, the first that can be served first."""
    if last is None:
        return sorted(starving, key=_place)
    goes_on = [line for line in starving if line.sweep.name == last.sweep and _since(line) == last.since]
    if goes_on or now - last.at < patience:
        return goes_on
    return sorted(starving, key=lambda line: (_place(line) <= (last.since, last.sweep), _place(line)))


def _serve(filling: Filling, line: Line) -> bool:
    while not line.given and (following := line.take_next()) is not None:
        filling.serve(line, following)
    return bool(line.given)


def _since(line: Line) -> float:
    return 0.0 if line.starving is None else line.starving


def _place(line: Line) -> tuple[float, str]:
    return _since(line), line.sweep.name
