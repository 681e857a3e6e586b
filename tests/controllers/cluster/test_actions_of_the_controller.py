"""Who acts, and what is told of it."""

import logging
from typing import Any

import pytest

from controllers.cluster.action_report import ActionReport
from controllers.cluster.campaign_world import LeaderOnly
from controllers.cluster.instruments import Instruments
from controllers.core.actions import Migrate, Resize
from controllers.core.model import Phase, TrialId
from controllers.core.ports import Outcome, OutcomeKind, refused
from tests.controllers.cluster.clusters_in_memory import TWO, MemoryWorld, trial

A = TrialId("uid.vae.t000")
RESIZE = Resize(A, 0.5)


class Desk:
    """A controller over one trial, and what it tells."""

    def __init__(self, *, leading: bool = True, recommend: bool = False) -> None:
        self.world = MemoryWorld.of(trial())
        self.leading = leading
        self.instruments = Instruments()
        self.acted_on = LeaderOnly(self.world, lambda: self.leading, recommend=recommend)
        self.report = ActionReport(self.instruments, {"workflow": "w"})

    def act(self, action: Any = RESIZE, reason: str = "because") -> Outcome:  # noqa: ANN401 - any action
        outcome = self.acted_on.apply(action)
        self.report.acted(1.0, action, reason, outcome)
        return outcome

    def counted(self, kind: str = "resize") -> dict[str, float]:
        value = self.instruments.registry.get_sample_value
        found = {o: value("specon_actions_total", {"kind": kind, "outcome": o}) for o in OutcomeKind}
        return {outcome: count for outcome, count in found.items() if count}


def test_the_leader_acts() -> None:
    desk = Desk()
    assert desk.act().done
    assert desk.world.done == [RESIZE]
    assert desk.counted() == {"done": 1}


def test_who_does_not_lead_any_more_acts_on_nothing() -> None:
    desk = Desk()
    desk.leading = False
    assert not desk.act().done
    assert desk.world.done == []
    assert desk.counted() == {"refused": 1}


def test_a_recommendation_is_kept_logged_and_counted_but_not_done(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(recommend=True)
    with caplog.at_level(logging.INFO):
        assert not desk.act(Migrate(A, (TWO,)), "w1 is crowded").done
    assert desk.world.done == []
    assert desk.counted("migrate") == {"recommended": 1}
    assert (desk.report.recommended[A].action, desk.report.recommended[A].reason) == (
        Migrate(A, (TWO,)),
        "w1 is crowded",
    )
    (record,) = caplog.records
    assert record.getMessage() == "recommended move of uid.vae.t000 to two: w1 is crowded"
    assert record.__dict__["fields"] == {
        "workflow": "w",
        "kind": "migrate",
        "trial": A,
        "node": TWO,
        "outcome": "recommended",
        "reason": "w1 is crowded",
    }


def test_the_same_recommendation_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(recommend=True)
    with caplog.at_level(logging.INFO):
        for action in (RESIZE, RESIZE, Resize(A, 0.7), RESIZE):
            desk.act(action)
    assert len(caplog.records) == 3


def test_what_the_world_refuses_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.world.accepts = False
    with caplog.at_level(logging.INFO):
        desk.act()
        desk.act()
    assert [(r.levelname, r.__dict__["fields"]["detail"]) for r in caplog.records] == [("WARNING", "not today")]
    assert desk.counted() == {"refused": 2}


def test_a_wish_that_varies_is_refused_aloud_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    with caplog.at_level(logging.INFO):
        for cpu, detail in ((0.5, "no room"), (0.6, "no room"), (0.7, "no node"), (0.8, "no node"), (0.9, "no room")):
            desk.report.acted(1.0, Resize(A, cpu), "because", refused(detail))
    assert [record.__dict__["fields"]["detail"] for record in caplog.records] == ["no room", "no node", "no room"]


def test_that_an_action_is_still_under_way_is_no_warning_and_makes_none_of_what_was_told_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    with caplog.at_level(logging.DEBUG):
        for outcome in (refused("no room"), Outcome(OutcomeKind.BUSY, "still under way"), refused("no room")):
            desk.report.acted(1.0, RESIZE, "because", outcome)
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG", "DEBUG"]
    assert desk.counted() == {"refused": 2, "busy": 1}


@pytest.mark.parametrize("kind", [OutcomeKind.VETOED, OutcomeKind.CHANGED])
def test_what_never_reached_the_world_is_counted_but_no_news(
    kind: OutcomeKind, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    desk.act()
    with caplog.at_level(logging.INFO):
        desk.report.acted(2.0, RESIZE, "because", Outcome(kind, "acted on 1 s ago"))
    assert desk.counted() == {"done": 1, kind: 1}
    assert caplog.records == []


def test_the_controller_sees_the_world_as_it_is() -> None:
    desk = Desk()
    assert [t.phase for t in desk.acted_on.trials()] == [Phase.RUNNING]
    assert desk.acted_on.trial(A) == desk.world.trial(A)
    assert [n.name for n in desk.acted_on.nodes()] == ["one", "two"]
    assert desk.acted_on.node(TWO) == desk.world.node(TWO)
    assert desk.acted_on.can == desk.world.can
