"""When an engine is ticked: by its policy's wish, by what changes, by what was refused, and by the heartbeat."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from controllers.core.actions import Action, Decision, Proposal, Resize
from controllers.core.engine import Engine
from controllers.core.model import Direction, Phase, Sample, Snapshot, Trial, TrialId
from controllers.core.ports import DONE, Outcome, refused
from controllers.driving.driver import Driver, RealBeats, VirtualBeats
from tests.controllers.quiet_world import QuietWorld

A = Trial(TrialId("a"), Phase.RUNNING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0)


@dataclass(frozen=True)
class Wishes:
    """A policy that asks for the wake-ups given, one at each tick and none after them; ``ticks`` notes each tick."""

    name: ClassVar[str] = "wishes"
    needs: ClassVar[frozenset[type[Action]]] = frozenset()
    wake_at: deque[float | None] = field(default_factory=deque)
    acts: deque[Action | None] = field(default_factory=deque)
    ticks: list[float] = field(default_factory=list)

    @property
    def state_type(self) -> type[None]:
        return type(None)

    def initial(self) -> None:
        return None

    def decide(self, snapshot: Snapshot, state: None) -> Decision[None]:
        self.ticks.append(snapshot.now)
        action = self.acts.popleft() if self.acts else None
        proposals = () if action is None else (Proposal(action, "because"),)
        return Decision(state, proposals, self.wake_at.popleft() if self.wake_at else None)


@dataclass
class ChangingWorld(QuietWorld):
    """One trial; changes at the times given, and answers actions as it is told."""

    changes: deque[float] = field(default_factory=deque)
    outcome: Outcome = DONE
    shows_actions: bool = False
    changed: bool = False

    def trials(self) -> Sequence[Trial]:
        return [A]

    def apply(self, action: Action) -> Outcome:
        del action
        self.changed = self.shows_actions
        return self.outcome

    def advance(self, now: float) -> bool:
        changed, self.changed = self.changed, False
        while self.changes and self.changes[0] <= now:
            self.changes.popleft()
            changed = True
        return changed


class NoMetrics:
    def poll(self) -> Mapping[TrialId, Sample]:
        return {}


class NoStore:
    def load(self) -> str | None:
        return None

    def save(self, state: object, *, urgent: bool) -> None:
        pass


def driven(policy: Wishes, world: ChangingWorld, beats: RealBeats | VirtualBeats) -> Driver:
    return Driver(Engine(policy, world, NoMetrics(), NoStore()), world, beats)


def drive(driver: Driver, until: float, every: float = 0.25) -> None:
    """Drive as the loops do: let the world go on, and tick once that is due."""
    for step in range(math.floor(until / every) + 1):
        driver.advance(step * every)
        if step * every >= driver.due_at:
            driver.tick(step * every)


def ticks(
    beats: RealBeats | VirtualBeats, until: float, world: ChangingWorld | None = None, **wishes: object
) -> list[float]:
    policy = Wishes(**{name: deque(wish) for name, wish in wishes.items()})  # type: ignore[call-overload] # any sequence
    drive(driven(policy, world or ChangingWorld(), beats), until)
    return policy.ticks


def test_in_real_time_every_heartbeat_brings_a_tick() -> None:
    assert ticks(RealBeats(2.0), 6.0) == [0.0, 2.0, 4.0, 6.0]


def test_in_real_time_a_wake_up_comes_when_it_is_asked_for_and_the_heartbeat_counts_from_it() -> None:
    assert ticks(RealBeats(2.0), 4.0, wake_at=[0.75]) == [0.0, 0.75, 2.75]


def test_in_real_time_a_change_brings_a_tick_at_once() -> None:
    assert ticks(RealBeats(10.0), 4.0, ChangingWorld(deque([1.0, 3.25]))) == [0.0, 1.0, 3.25]


def test_in_virtual_time_nothing_asked_and_nothing_changed_brings_no_tick() -> None:
    assert ticks(VirtualBeats(1.0), 9.0) == [0.0]


def test_in_virtual_time_ticks_come_at_multiples_of_the_heartbeat_only() -> None:
    assert ticks(VirtualBeats(1.0), 9.0, ChangingWorld(deque([4.25])), wake_at=[2.5]) == [0.0, 3.0, 5.0]


def test_in_virtual_time_each_beat_comes_once_whatever_falls_into_it() -> None:
    world = ChangingWorld(deque([0.25, 0.5, 0.75, 1.0]))
    assert ticks(VirtualBeats(1.0), 3.0, world, wake_at=[0.5, 1.0]) == [0.0, 1.0, 2.0]


def test_in_virtual_time_a_wake_up_that_rounding_puts_just_past_a_beat_is_not_a_beat_late() -> None:
    beats = VirtualBeats(0.1)
    assert beats.at(0.1 + 0.1 + 0.1) == pytest.approx(0.3)
    assert beats.at(math.inf) == math.inf


@pytest.mark.parametrize("beats", [RealBeats(1.0), VirtualBeats(1.0)])
def test_what_was_refused_is_asked_again_a_beat_later(beats: RealBeats | VirtualBeats) -> None:
    world = ChangingWorld(outcome=refused("no room"))
    assert ticks(beats, 1.0, world, acts=[Resize(A.id, 0.2)]) == [0.0, 1.0]


def test_in_virtual_time_what_an_action_changed_at_once_is_looked_at_a_beat_later() -> None:
    assert ticks(VirtualBeats(1.0), 5.0, ChangingWorld(shows_actions=True), acts=[Resize(A.id, 0.2)]) == [0.0, 1.0]


def test_a_rest_holds_back_what_a_change_asks_for_and_the_change_is_not_lost() -> None:
    policy, world, beats = Wishes(), ChangingWorld(deque([1.0])), RealBeats(10.0)
    driver = driven(policy, world, beats)
    driver.tick(0.0)
    beats.rest_until = 3.0
    drive(driver, 5.0)
    assert policy.ticks == [0.0, 3.0]


def test_a_rest_holds_back_no_wake_up() -> None:
    policy, beats = Wishes(wake_at=deque([1.5])), RealBeats(10.0)
    driver = driven(policy, ChangingWorld(deque([1.0])), beats)
    driver.tick(0.0)
    beats.rest_until = 3.0
    drive(driver, 2.0)
    assert policy.ticks == [0.0, 1.5]


def test_advance_tells_whether_anything_changed_also_while_a_tick_is_held_back() -> None:
    beats = RealBeats(10.0)
    driver = driven(Wishes(), ChangingWorld(deque([1.0])), beats)
    driver.tick(0.0)
    beats.rest_until = 3.0
    assert [driver.advance(at) for at in (0.5, 1.0, 1.5)] == [False, True, False]
    assert driver.due_at == 3.0
