"""At most one leader, whatever is lost, late, or killed; and a leader again soon after one has died."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controllers.cluster.election import (
    Create,
    Election,
    Lease,
    LeaseTiming,
    LeaseTimingError,
    LeaseUnavailableError,
    Read,
    Replace,
    Request,
    Round,
)
from tests.property_examples import examples

TIMING = LeaseTiming(15.0, 10.0, 2.0)


@dataclass
class StoredLease:
    """The API server's part: one object, and a version that every write changes."""

    lease: Lease | None = None
    versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def carry_out(self, request: Request) -> Lease | None:
        match request:
            case Read():
                return self.lease
            case Create(lease) if self.lease is None:
                return self._store(lease)
            case Replace(lease) if self.lease is not None and lease.version == self.lease.version:
                return self._store(lease)
            case _:
                return None

    def _store(self, lease: Lease) -> Lease:
        self.lease = replace(lease, version=str(next(self.versions)))
        return self.lease


@dataclass
class Candidate:
    """A process that competes: its round under way, and what stands between request and answer."""

    election: Election
    under_way: Round | None = None
    asked: Request | None = None
    answer: Lease | None = None
    answered: bool = False

    def begin(self, *, leaving: bool) -> None:
        self.under_way = self.election.hand_back() if leaving else self.election.round()
        self.asked = next(self.under_way)
        self.answered = False

    def receive(self) -> None:
        assert self.under_way is not None
        self._go_on(lambda round_: round_.send(self.answer))

    def fail(self) -> None:
        assert self.under_way is not None
        self._go_on(lambda round_: round_.throw(LeaseUnavailableError()))

    def _go_on(self, how: object) -> None:
        try:
            self.asked = how(self.under_way)  # type: ignore[operator] # one of the two above
            self.answered = False
        except (StopIteration, LeaseUnavailableError):
            self.under_way = self.asked = None


def one_of(candidates: list[Candidate], draw: st.DataObject) -> Candidate:
    """Return any of those to which something can happen: to draw others and to drop them fails for want of examples."""
    return candidates[draw.draw(st.integers(0, len(candidates) - 1))]


class Electing(RuleBasedStateMachine):
    """Three candidates whose requests and answers are delayed, reordered between them, and lost; any may die."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stored = StoredLease()
        self.numbers = itertools.count()
        self.candidates: list[Candidate] = []

    @initialize()
    def start(self) -> None:
        self.candidates = [self._new() for _ in range(3)]

    def _new(self) -> Candidate:
        return Candidate(Election(f"process-{next(self.numbers)}", TIMING, lambda: self.now))

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.0, 4.9, 5.1, 9.9, 10.1, 14.9, 15.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @property
    def idle(self) -> list[Candidate]:
        return [one for one in self.candidates if one.under_way is None]

    @property
    def busy(self) -> list[Candidate]:
        return [one for one in self.candidates if one.under_way is not None]

    @property
    def asking(self) -> list[Candidate]:
        return [one for one in self.busy if one.asked is not None and not one.answered]

    @property
    def answered(self) -> list[Candidate]:
        return [one for one in self.busy if one.answered]

    @precondition(lambda self: self.idle)
    @rule(draw=st.data(), leaving=st.sampled_from([False] * 9 + [True]))
    def a_round_begins(self, draw: st.DataObject, leaving: bool) -> None:  # noqa: FBT001 - hypothesis passes it
        one_of(self.idle, draw).begin(leaving=leaving)

    @precondition(lambda self: self.asking)
    @rule(draw=st.data())
    def a_request_arrives(self, draw: st.DataObject) -> None:
        candidate = one_of(self.asking, draw)
        assert candidate.asked is not None
        candidate.answer, candidate.answered = self.stored.carry_out(candidate.asked), True

    @precondition(lambda self: self.answered)
    @rule(draw=st.data())
    def an_answer_arrives(self, draw: st.DataObject) -> None:
        one_of(self.answered, draw).receive()

    @precondition(lambda self: self.idle)
    @rule(draw=st.data())
    def a_whole_round_goes_well(self, draw: st.DataObject) -> None:
        self._go_through_a_round(one_of(self.idle, draw))

    def _go_through_a_round(self, candidate: Candidate) -> None:
        candidate.begin(leaving=False)
        go_on(candidate, self.stored)

    @rule(rounds=st.integers(1, 8), silent=st.integers(0, 2))
    def one_is_cut_off_while_the_others_go_on(self, rounds: int, silent: int) -> None:
        for _ in range(rounds):
            for number, candidate in enumerate(self.candidates):
                if number != silent and candidate.under_way is None:
                    self._go_through_a_round(candidate)
            self.at_most_one_leads()
            self.now += TIMING.retry

    @precondition(lambda self: self.busy)
    @rule(draw=st.data())
    def a_request_or_its_answer_is_lost(self, draw: st.DataObject) -> None:
        one_of(self.busy, draw).fail()

    @rule(number=st.integers(0, 2))
    def a_process_dies_and_another_starts(self, number: int) -> None:
        self.candidates[number] = self._new()

    @invariant()
    def at_most_one_leads(self) -> None:
        leaders = [candidate.election.identity for candidate in self.candidates if candidate.election.leading]
        assert len(leaders) <= 1, leaders


TestElecting = Electing.TestCase
TestElecting.settings = settings(max_examples=examples(150), stateful_step_count=60)


def go_on(candidate: Candidate, stored: StoredLease) -> None:
    while candidate.under_way is not None:
        assert candidate.asked is not None
        candidate.answer = stored.carry_out(candidate.asked)
        candidate.receive()


@dataclass
class Room:
    """Candidates that are answered at once, and a clock."""

    now: float = 0.0
    stored: StoredLease = field(default_factory=StoredLease)

    def candidate(self, name: str) -> Candidate:
        return Candidate(Election(name, TIMING, lambda: self.now))

    def round(self, candidate: Candidate, *, leaving: bool = False) -> bool:
        candidate.begin(leaving=leaving)
        go_on(candidate, self.stored)
        return candidate.election.leading


@pytest.fixture
def room() -> Room:
    return Room()


def test_the_first_one_leads_and_the_second_stands_by(room: Room) -> None:
    one, two = room.candidate("one"), room.candidate("two")
    assert room.round(one)
    assert not room.round(two)
    assert two.election.holder == "one"


def test_a_leader_that_renews_goes_on_leading(room: Room) -> None:
    one, two = room.candidate("one"), room.candidate("two")
    for _ in range(20):
        assert room.round(one)
        assert not room.round(two)
        room.now += TIMING.retry


def test_another_leads_once_it_has_watched_a_dead_leaders_lease_for_its_duration(room: Room) -> None:
    one, two = room.candidate("one"), room.candidate("two")
    room.round(one)
    room.now = 5.0
    assert not room.round(two)
    room.now = 19.9
    assert not room.round(two)
    room.now = 20.0
    assert room.round(two)
    assert room.stored.lease is not None
    assert room.stored.lease.transitions == 1


def test_a_leader_that_cannot_renew_stops_before_another_may_begin(room: Room) -> None:
    one = room.candidate("one")
    room.round(one)
    room.now = 9.9
    assert one.election.leading
    room.now = 10.0
    assert not one.election.leading


def test_a_leader_counts_its_time_from_before_its_write_was_sent(room: Room) -> None:
    one = room.candidate("one")
    one.begin(leaving=False)
    one.answer = room.stored.carry_out(Read())
    one.receive()
    assert isinstance(one.asked, Create)
    one.answer = room.stored.carry_out(one.asked)
    room.now = 9.0
    one.receive()
    assert one.election.leading
    room.now = 10.0
    assert not one.election.leading


def test_a_lease_that_is_handed_back_is_taken_at_once(room: Room) -> None:
    one, two = room.candidate("one"), room.candidate("two")
    room.round(one)
    assert not room.round(two)
    assert not room.round(one, leaving=True)
    assert room.round(two)


def test_handing_back_leaves_anothers_lease_alone(room: Room) -> None:
    one, two = room.candidate("one"), room.candidate("two")
    room.round(one)
    room.round(two, leaving=True)
    assert one.election.leading
    assert room.stored.lease is not None
    assert room.stored.lease.holder == "one"


def test_a_lease_deleted_by_hand_is_not_taken_while_its_holder_still_acts(room: Room) -> None:
    one, two = room.candidate("one"), room.candidate("two")
    room.round(one)
    room.round(two)
    room.stored.lease = None
    assert not room.round(two)
    room.now = 9.0
    assert room.round(one)
    assert not room.round(two)


def test_a_claim_whose_answer_was_lost_is_known_again_by_its_name(room: Room) -> None:
    one = room.candidate("one")
    one.begin(leaving=False)
    one.answer = room.stored.carry_out(Read())
    one.receive()
    assert one.asked is not None
    room.stored.carry_out(one.asked)
    one.fail()
    assert not one.election.leading
    assert room.round(one)


@pytest.mark.parametrize("seconds", [(15.0, 15.0, 2.0), (10.0, 15.0, 2.0), (15.0, 10.0, 10.0), (15.0, 10.0, 0.0)])
def test_durations_that_would_let_two_lead_are_refused(seconds: tuple[float, float, float]) -> None:
    with pytest.raises(LeaseTimingError, match="retry < deadline < duration"):
        LeaseTiming(*seconds)
