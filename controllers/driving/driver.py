"""The one loop around an engine: when to tick it, in real time and in virtual time."""

import math
from typing import Any, Protocol

from controllers.core.bill import Bill
from controllers.core.engine import Engine
from controllers.core.ports import World

_SLACK = 1e-6
"""Heartbeats by which a wake-up may be early: sums of intervals are not exact."""


class Beats(Protocol):
    """The instants at which an engine may be ticked; all in seconds of the sweep's clock."""

    every: bool
    """Whether each beat brings a tick, since the world cannot tell of all that changes in it."""

    def at(self, time: float) -> float:
        """Return the first instant at ``time`` or later."""
        ...

    def after(self, now: float) -> float:
        """Return the beat that follows a tick at ``now``."""
        ...

    def passed(self, now: float) -> None:
        """Take note of a tick at ``now``."""
        ...


class RealBeats:
    """Real time: an engine may be ticked at any instant, and is every ``heartbeat_s`` seconds.

    ``rest_until`` holds back ticks that a change asks for: in a large sweep changes come by the second, and looking at
    it must leave time for the others.
    """

    every = True

    def __init__(self, heartbeat_s: float) -> None:
        self._heartbeat_s = heartbeat_s
        self.rest_until = -math.inf

    def at(self, time: float) -> float:
        """Return ``time``, or the end of the rest."""
        return max(time, self.rest_until)

    def after(self, now: float) -> float:
        """Return when the next heartbeat is."""
        return now + self._heartbeat_s

    def passed(self, now: float) -> None:
        """Do nothing: real time passes by itself."""


class VirtualBeats:
    """Virtual time: an engine is ticked at multiples of ``heartbeat_s``, at each once at most.

    A beat with nothing new to see but metrics brings no tick: policies look at metrics when they asked to.
    """

    every = False

    def __init__(self, heartbeat_s: float) -> None:
        self._heartbeat_s = heartbeat_s
        self._last = -1

    def at(self, time: float) -> float:
        """Return the first beat at ``time`` or later that has not been; infinite for an infinite time."""
        if time == math.inf:
            return math.inf
        return max(self._last + 1, math.ceil(time / self._heartbeat_s - _SLACK)) * self._heartbeat_s

    def after(self, now: float) -> float:
        """Return the next beat."""
        return self.at(now)

    def passed(self, now: float) -> None:
        """Take note of the beat at ``now``."""
        self._last = math.ceil(now / self._heartbeat_s - _SLACK)


class Driver:
    """Ticks an engine over its world.

    A tick comes when the policy asked to be woken, when the world has changed, when something was refused that may be
    let through later, and at every beat where ``beats`` says so. The caller has the clock: it calls ``advance``, and
    ``tick`` once ``due_at`` has come.
    """

    def __init__(self, engine: Engine[Any], world: World, beats: Beats, now: float = 0.0) -> None:
        self._engine = engine
        self._world = world
        self._beats = beats
        self.due_at = now
        """When the next tick is due, in seconds of the sweep's clock; infinite while nothing asks for one."""

    @property
    def bill(self) -> Bill:
        """What the sweep has cost so far."""
        return self._engine.bill

    def advance(self, now: float) -> bool:
        """Let the world go on until ``now``; return whether anything changed, which brings a tick."""
        changed = self._world.advance(now)
        if changed:
            self.due_at = min(self.due_at, self._beats.at(now))
        return changed

    def tick(self, now: float) -> None:
        """Tick the engine, and work out when it is due again."""
        self._beats.passed(now)
        tick = self._engine.tick(now)
        wake_at = self._beats.at(math.inf if tick.wake_at is None else tick.wake_at)
        # A simulated world shows at once what was just done to it; a real one is not asked again so soon.
        again = self._beats.every or tick.refused or self._world.advance(now)
        self.due_at = min(wake_at, self._beats.after(now)) if again else wake_at
