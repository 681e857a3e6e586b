"""Many campaigns in one process: each begun, driven and ended; none in the way of another."""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from controllers.cluster.campaigns import Campaigns
from controllers.cluster.instruments import Instruments
from controllers.core.model import Phase
from controllers.worlds.argo.meaning.view import Campaign
from tests.controllers.cluster.clusters_in_memory import campaign


@dataclass
class FakeRun:
    """Does as its test says."""

    campaign: Campaign
    breaks: Exception | None = None
    done: bool = False
    steps: int = 0
    closed: bool = False
    kept: bool = False
    abandoned: bool = False
    without_objective: int = 1
    phases: Counter[Phase] = field(default_factory=lambda: Counter({Phase.RUNNING: 2}))

    def step(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.steps += 1
        if self.breaks is not None:
            raise self.breaks

    def keep_state(self) -> None:
        self.kept = True

    def close(self) -> None:
        self.closed = True

    def abandon(self) -> None:
        self.abandoned = True


class Office:
    """Campaigns, the runs that were begun for them, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.leading = True
        self.runs: list[FakeRun] = []
        self.failing: dict[str, Exception] = {}
        self.instruments = Instruments()
        self.closers: list[threading.Thread] = []
        self.slow_to_close = threading.Event()
        self.slow_to_close.set()
        self.campaigns = Campaigns(self.start, lambda: self.now, self.instruments, lambda: self.leading, self.beside)

    def beside(self, work: Callable[[], None]) -> threading.Thread:
        """Do it on another thread; wait for that, but where closing is slow."""

        def late() -> None:
            self.slow_to_close.wait(30)
            work()

        thread = threading.Thread(target=late)
        thread.start()
        if self.slow_to_close.is_set():
            thread.join(30)
        self.closers.append(thread)
        return thread

    def start(self, campaign: Campaign) -> FakeRun:
        self.runs.append(FakeRun(campaign, self.failing.get(campaign.uid)))
        return self.runs[-1]

    def of(self, uid: str) -> list[FakeRun]:
        return [run for run in self.runs if run.campaign.uid == uid]

    def value(self, name: str) -> float | None:
        return self.instruments.registry.get_sample_value(name)


A, B = campaign("a"), campaign("b")


@pytest.fixture
def office() -> Office:
    return Office()


def test_every_campaign_is_begun_once_and_goes_on(office: Office) -> None:
    for _ in range(3):
        office.campaigns.reconcile([A, B, replace(A, policy="flowcon")])
        office.campaigns.step()
    assert [(run.campaign.uid, run.campaign.policy, run.steps) for run in office.runs] == [
        ("a", "default", 3),
        ("b", "default", 3),
        ("a", "flowcon", 3),
    ]
    assert (office.value("specon_campaigns"), office.value("specon_trials_without_objective")) == (3, 3)
    assert office.instruments.registry.get_sample_value("specon_trials", {"phase": "running"}) == 6


def test_one_that_fails_is_set_aside_and_the_others_go_on(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.failing["a"] = RuntimeError("boom")
    office.campaigns.reconcile([A, B])
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            office.campaigns.step()
    assert [run.closed for run in office.of("a")] == [True]
    assert [run.steps for run in office.of("b")] == [3]
    assert (office.value("specon_campaigns_failing"), office.value("specon_campaign_errors_total")) == (1, 1)
    (record,) = caplog.records
    assert record.exc_info
    assert record.__dict__["fields"]["workflow"] == A.workflow


def test_it_is_tried_anew_after_a_wait_that_doubles_up_to_a_minute(office: Office) -> None:
    office.failing["a"] = RuntimeError("boom")
    office.campaigns.reconcile([A])
    waits = []
    for _ in range(9):
        office.campaigns.step()
        began, tried = office.now, len(office.runs)
        while len(office.runs) == tried:
            office.now += 0.5
            office.campaigns.step()
        waits.append(office.now - began)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_one_that_goes_well_again_is_trusted_again(office: Office) -> None:
    office.failing["a"] = RuntimeError("boom")
    office.campaigns.reconcile([A])
    office.campaigns.step()
    office.failing.clear()
    office.now += 1.0
    office.campaigns.step()
    assert office.of("a")[-1].steps == 1
    assert office.value("specon_campaigns_failing") == 0
    office.now += 61.0
    office.campaigns.step()
    office.of("a")[-1].breaks = RuntimeError("boom")
    office.campaigns.step()
    office.now += 1.0
    office.campaigns.step()
    assert len(office.of("a")) == 3


def test_one_that_is_done_is_closed_and_not_begun_again(office: Office) -> None:
    office.campaigns.reconcile([A])
    office.campaigns.step()
    office.runs[0].done = True
    for _ in range(2):
        office.campaigns.step()
        office.campaigns.reconcile([replace(A, finished=True)])
    assert [(run.steps, run.closed) for run in office.runs] == [(2, True)]
    assert office.value("specon_campaigns") == 0


def test_a_workflow_that_is_retried_goes_on(office: Office) -> None:
    office.campaigns.reconcile([replace(A, finished=True)])
    office.campaigns.step()
    office.runs[0].done = True
    office.campaigns.step()
    office.campaigns.reconcile([A])
    office.campaigns.step()
    assert len(office.runs) == 2


def test_a_workflow_that_was_deleted_is_let_go(office: Office) -> None:
    office.campaigns.reconcile([A])
    office.campaigns.step()
    office.campaigns.reconcile([])
    office.campaigns.step()
    assert [(run.abandoned, run.closed, run.steps) for run in office.runs] == [(True, True, 1)]


def test_campaigns_that_were_over_before_are_looked_through_a_few_at_a_time(office: Office) -> None:
    over = [campaign(f"w{number}", finished=True) for number in range(9)]
    office.campaigns.reconcile([*over, A])
    office.campaigns.step()
    assert len(office.runs) == 5
    office.runs[0].done = True
    office.campaigns.step()
    office.campaigns.step()
    assert len(office.runs) == 6


def test_it_stops_in_the_midst_when_the_lease_is_lost(office: Office) -> None:
    office.campaigns.reconcile([A, B])
    office.leading = False
    office.campaigns.step()
    assert office.runs == []


def test_closing_ends_all_and_what_they_remember_is_kept_only_when_asked(office: Office) -> None:
    office.campaigns.reconcile([A, B])
    office.campaigns.step()
    office.campaigns.keep_states()
    office.campaigns.close()
    assert [(run.kept, run.closed) for run in office.runs] == [(True, True)] * 2
    office.campaigns.reconcile([A])
    office.campaigns.step()
    office.campaigns.close()
    assert (office.runs[2].kept, office.runs[2].closed) == (False, True)


def test_nobody_waits_for_a_campaign_that_is_slow_to_end_but_its_own_successor(office: Office) -> None:
    office.campaigns.reconcile([A, B])
    office.campaigns.step()
    office.slow_to_close.clear()
    office.of("a")[0].breaks = RuntimeError("MLflow hangs")
    office.campaigns.step()
    office.now += 60.0
    office.campaigns.step()
    assert [run.closed for run in office.of("a")] == [False]
    assert [run.steps for run in office.of("b")] == [3]
    assert not office.campaigns.wait_closed(0.0)
    office.slow_to_close.set()
    for closer in office.closers:
        closer.join(30)
    assert office.campaigns.wait_closed(0.0)
    office.campaigns.step()
    assert [run.closed for run in office.of("a")] == [True, False]


def test_who_leads_again_waits_for_what_was_begun_to_be_ended(office: Office) -> None:
    office.campaigns.reconcile([A])
    office.campaigns.step()
    office.slow_to_close.clear()
    office.campaigns.close()
    office.campaigns.reconcile([A])
    office.campaigns.step()
    assert len(office.runs) == 1
    office.slow_to_close.set()
    for closer in office.closers:
        closer.join(30)
    office.campaigns.step()
    assert len(office.runs) == 2


def test_the_many_campaigns_of_one_namespace_are_begun_a_hundred_at_a_time_and_delay_no_other(office: Office) -> None:
    crowd = [campaign(f"w{number}", namespace="crowd") for number in range(150)]
    office.campaigns.reconcile([*crowd, A])
    office.campaigns.step()
    begun = Counter(run.campaign.namespace for run in office.runs)
    assert begun == {"crowd": 100, "team": 1}


def test_campaigns_that_were_over_before_wait_for_those_of_their_own_namespace_only(office: Office) -> None:
    over = [campaign(f"w{number}", namespace="crowd", finished=True) for number in range(9)]
    office.campaigns.reconcile([*over, replace(A, finished=True)])
    office.campaigns.step()
    assert Counter(run.campaign.namespace for run in office.runs) == {"crowd": 4, "team": 1}


def test_a_namespace_whose_campaigns_take_long_gets_half_a_second_in_each_round_and_all_of_them_their_turn(
    office: Office,
) -> None:
    class Slow(FakeRun):
        def step(self, campaign: Campaign) -> None:
            super().step(campaign)
            office.now += 0.2 if campaign.namespace == "crowd" else 0.0

    def start(campaign: Campaign) -> FakeRun:
        office.runs.append(Slow(campaign))
        return office.runs[-1]

    slow = Campaigns(start, lambda: office.now, office.instruments, lambda: True, office.beside)
    slow.reconcile([*(campaign(f"w{number}", namespace="crowd") for number in range(9)), A])
    for _ in range(3):
        slow.step()
    steps = {run.campaign.uid: run.steps for run in office.runs}
    assert steps == {**{f"w{number}": 1 for number in range(9)}, "a": 3}
