"""How many trials that name no request keep the cores of a node busy."""

import pytest

from controllers.worlds.local.cores import Taken, room_for_more

NEW = Taken(1.0, new=True)


def trials(count: int, used: float) -> list[Taken]:
    return [Taken(1.0, used, in_doubt=True)] * count


def test_whether_cores_are_idle_is_no_question_where_trials_tell_what_they_wait_for() -> None:
    assert room_for_more(2.0, [Taken(1.0, 0.1)] * 2, 1.0, idle=0.0) == pytest.approx(1.78)
    assert room_for_more(2.0, [Taken(1.0, 1.0)] * 8, 1.0, idle=2.0) == 0.0


def test_at_first_there_is_a_trial_for_each_core() -> None:
    assert room_for_more(2.0, [], 1.0, idle=0.0) == 2.0
    assert room_for_more(2.0, [NEW], 1.0, idle=2.0) == 1.0
    assert room_for_more(2.0, [NEW, NEW], 1.0, idle=2.0) == 0.0


def test_trials_that_keep_their_cores_busy_leave_no_room() -> None:
    assert room_for_more(2.0, trials(2, 1.0), 1.0, idle=0.0) == 0.0
    assert room_for_more(2.0, trials(2, 0.8), 1.0, idle=0.4) == 0.0


def test_trials_that_wait_leave_room_for_more() -> None:
    assert room_for_more(2.0, trials(2, 0.1), 1.0, idle=1.8) == pytest.approx(1.78)


def test_one_more_starts_where_half_of_what_it_will_use_is_idle() -> None:
    assert room_for_more(2.0, trials(2, 0.6), 1.0, idle=0.8) == 1.0
    assert room_for_more(2.0, trials(3, 0.6), 1.0, idle=0.2) < 1.0


def test_no_more_start_until_those_before_have_told() -> None:
    assert room_for_more(2.0, [*trials(2, 0.1), NEW, NEW], 1.0, idle=2.0) == 0.0


@pytest.mark.parametrize("count", [2, 4, 20])
def test_trials_that_are_kept_waiting_for_cores_are_not_taken_for_idle_ones(count: int) -> None:
    """By others on the machine, or by one another: each uses little, and nothing is idle."""
    assert room_for_more(2.0, trials(count, 1.0 / count), 1.0, idle=0.0) == 0.0
    assert room_for_more(2.0, trials(count, 0.0), 1.0, idle=0.0) == 0.0


def test_trials_that_wait_come_to_as_many_as_the_cores_bear_step_by_step() -> None:
    running: list[Taken] = []
    for _ in range(20):
        used = sum(one.used or 0.0 for one in running)
        running += [Taken(1.0, 0.25)] * int(room_for_more(2.0, running, 1.0, idle=2.0 - used))
    assert 7 <= len(running) <= 8


def test_a_request_that_its_author_named_stays_a_reservation() -> None:
    named = Taken(1.5)
    assert named.counts_as == 1.5
    assert room_for_more(2.0, [named], 1.0, idle=2.0) == 0.5
