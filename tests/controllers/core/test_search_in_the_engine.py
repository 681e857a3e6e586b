"""The engine and searches: hyperparameters are asked for once, when a trial is placed, and outlive the controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controllers.core.actions import Action, Clone, Place
from controllers.core.engine import Engine
from controllers.core.errors import SearchError, SearchPending
from controllers.core.model import Phase, Point, Snapshot, Trial, TrialId
from controllers.core.ports import DONE, Outcome, OutcomeKind, refused
from tests.controllers.core.test_engine import FakeSource, FakeWorld, Kept, Scripted, trial

POINT: Point = (("lr", 0.01), ("depth", 3), ("bias", True), ("name", "x"))
PLACE = Place(TrialId("a"))


@dataclass
class Counting:
    """Finds the same point each time, and counts how often it is asked."""

    asked: list[TrialId] = field(default_factory=list)
    fails: bool = False
    looks: int = 0

    def ask(self, trial: Trial, snapshot: Snapshot, points: Mapping[TrialId, Point]) -> Point:
        del snapshot, points
        self.asked.append(trial.id)
        if len(self.asked) <= self.looks:
            message = "still looking"
            raise SearchPending(message)
        if self.fails:
            message = "no idea"
            raise SearchError(message)
        return POINT


@dataclass
class Refusing(FakeWorld):
    """Refuses whatever is wanted, and remembers it."""

    def apply(self, action: object) -> Outcome:
        super().apply(action)  # type: ignore[arg-type]  # any action
        return refused("not now") if len(self.done) == 1 else DONE


def waiting(**changes: Any) -> Trial:  # noqa: ANN401 - fields of Trial
    return trial(**{"phase": Phase.PENDING, "nodes": (), "attempt": 0, "gated": True, "search": "words", **changes})


def test_a_trial_that_is_placed_gets_what_its_search_finds() -> None:
    world, search = FakeWorld([[waiting()]]), Counting()
    Engine(Scripted((PLACE,)), world, FakeSource(), Kept(), search=search).tick(1.0)
    assert world.done == [Place(TrialId("a"), (), POINT)]


def test_a_search_is_asked_once_however_often_the_trial_is_placed() -> None:
    world, search = Refusing([[waiting()]]), Counting()
    engine = Engine(Scripted((PLACE,)), world, FakeSource(), Kept(), search=search)
    engine.tick(1.0)
    engine.tick(2.0)
    assert world.done == [Place(TrialId("a"), (), POINT)] * 2
    assert search.asked == ["a"]


def test_what_was_found_outlives_the_controller() -> None:
    store, search = Kept(), Counting()
    engine = Engine(Scripted((PLACE,)), FakeWorld([[waiting()]]), FakeSource(), store, search=search)
    engine.tick(1.0)
    engine.tick(2.0)
    world = FakeWorld([[waiting()]])
    Engine(Scripted((PLACE,)), world, FakeSource(), store, search=search).tick(3.0)
    assert world.done == [Place(TrialId("a"), (), POINT)]
    assert [type(value) for _, value in world.done[0].point] == [float, int, bool, str]  # type: ignore[union-attr]
    assert search.asked == ["a"]


@pytest.mark.parametrize("changes", [{"search": ""}, {"parameters": (("lr", 0.01),)}])
def test_a_trial_that_has_its_hyperparameters_is_placed_as_it_is(changes: dict[str, object]) -> None:
    world, search = FakeWorld([[waiting(**changes)]]), Counting()
    Engine(Scripted((PLACE,)), world, FakeSource(), Kept(), search=search).tick(1.0)
    assert world.done == [PLACE]
    assert not search.asked


def test_a_search_that_is_still_looking_is_nothing_wrong_and_the_trial_starts_at_a_later_tick() -> None:
    world, search, told = FakeWorld([[waiting()]]), Counting(looks=1), list[Outcome]()

    class Log:
        def acted(self, now: float, action: object, reason: str, outcome: Outcome) -> None:
            del now, action, reason
            told.append(outcome)

    engine = Engine(Scripted((PLACE,)), world, FakeSource(), Kept(), [Log()], search=search)
    assert engine.tick(1.0).refused
    assert (world.done, [one.kind for one in told]) == ([], [OutcomeKind.BUSY])
    engine.tick(2.0)
    assert world.done == [Place(TrialId("a"), (), POINT)]


def test_a_search_that_fails_is_a_refusal_with_its_reason() -> None:
    world = FakeWorld([[waiting()]])
    told: list[str] = []

    class Log:
        def acted(self, now: float, action: object, reason: str, outcome: Outcome) -> None:
            del now, action, reason
            told.append(outcome.detail)

    engine = Engine(Scripted((PLACE,)), world, FakeSource(), Kept(), [Log()], search=Counting(fails=True))
    assert engine.tick(1.0).refused
    assert (world.done, told) == ([], ["no idea"])


CLONE = Clone(TrialId("a"), TrialId("b"))


@dataclass
class Told:
    """Remembers each action and outcome that it is told of."""

    told: list[tuple[Action, Outcome]] = field(default_factory=list)

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        del now, reason
        self.told.append((action, outcome))


def test_a_clone_gets_what_its_parents_hyperparameters_become_and_is_recorded_with_it() -> None:
    pair = [waiting(phase=Phase.SUSPENDED), waiting(name="b", phase=Phase.SUSPENDED, parameters=(("lr", 1.0),))]
    world, told = FakeWorld([pair]), Told()

    def explore(trial: Trial, parent: Trial, clone: Clone) -> Point:
        assert (trial.id, parent.id, clone) == ("a", "b", CLONE)
        return POINT

    Engine(Scripted((CLONE,)), world, FakeSource(), Kept(), [told], explore=explore).tick(1.0)
    assert world.done == [replace(CLONE, point=POINT)]
    assert told.told == [(replace(CLONE, point=POINT), DONE)]


def test_a_clone_whose_parent_is_gone_or_that_nobody_can_change_is_not_asked_for() -> None:
    alone = [waiting(phase=Phase.SUSPENDED)]
    told = Told()
    Engine(Scripted((CLONE,)), FakeWorld([alone]), FakeSource(), Kept(), [told]).tick(1.0)
    pair = [*alone, waiting(name="b", phase=Phase.SUSPENDED)]
    Engine(Scripted((CLONE,)), FakeWorld([pair]), FakeSource(), Kept(), [told]).tick(1.0)
    assert [outcome.kind for _, outcome in told.told] == [OutcomeKind.CHANGED, OutcomeKind.REFUSED]
