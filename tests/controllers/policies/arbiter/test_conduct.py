"""Whether what trials say of their ends is believed, and which of them do not hear."""

from dataclasses import replace

from controllers.policies.arbiter import Claimant
from controllers.policies.arbiter.conduct import MOST_DOUBTS, Conduct, conduct_after
from tests.controllers.policies.arbiter.sharing_sweeps import runs, sweep

SOON = 60.0


def after(*rounds: tuple[float, list[Claimant]], before: Conduct = Conduct()) -> Conduct:  # noqa: B008 - frozen
    for now, trials in rounds:
        before = conduct_after(now, [sweep("red", *trials)], before, SOON)
    return before


def ending(name: str, left_s: float = 30.0, **changes: object) -> Claimant:
    return replace(runs(name, "n0", left_s=left_s), **changes)  # type: ignore[arg-type] # any field


def test_a_trial_is_believed_until_it_should_have_ended_twice_over() -> None:
    for now, believed in ((0.0, True), (90.0, True), (91.0, False), (9000.0, False)):
        conduct = after((0.0, [ending("a")]), (now, [ending("a")]))
        assert conduct.ends_soon(ending("a"), SOON) is believed


def test_what_counts_is_the_first_promise_of_an_attempt_however_often_it_is_made_again() -> None:
    conduct = after((0.0, [ending("a")]), (50.0, [ending("a", 500.0)]), (95.0, [ending("a")]), (99.0, [ending("a")]))
    assert not conduct.ends_soon(ending("a"), SOON)
    again = after((100.0, [ending("a", attempt=2)]), before=replace(conduct, doubts={}))
    assert again.ends_soon(ending("a", attempt=2), SOON)


def test_a_namespace_that_lied_is_believed_again_after_as_many_promises_came_true() -> None:
    lied = after((0.0, [ending("a"), ending("b")]), (200.0, [ending("a"), ending("b")]))
    assert lied.doubts == {"red": 2}
    one = after((210.0, [ending("c")]), (220.0, []), before=lied)
    assert not after((230.0, [ending("d")]), before=one).ends_soon(ending("d"), SOON)
    both = after((230.0, [ending("d")]), (240.0, []), before=one)
    assert after((250.0, [ending("e")]), before=both).ends_soon(ending("e"), SOON)


def test_a_broken_promise_that_ends_at_last_makes_up_for_nothing() -> None:
    late = after((0.0, [ending("a")]), (200.0, [ending("a")]), (300.0, []))
    assert late.doubts == {"red": 1}


def test_one_namespaces_lies_are_no_other_ones() -> None:
    red, blue = sweep("red", ending("a")), sweep("blue", ending("b"))
    lied = conduct_after(100.0, [red], conduct_after(0.0, [red], Conduct(), SOON), SOON)
    assert conduct_after(110.0, [red, blue], lied, SOON).ends_soon(ending("b"), SOON)


def test_a_trial_that_is_made_to_leave_has_neither_kept_nor_broken_what_it_said() -> None:
    conduct = after((0.0, [ending("a")]), (10.0, [ending("a", steady=False, leaving=True)]), (900.0, []))
    assert conduct.doubts == {}


def test_a_namespace_can_make_up_for_any_number_of_lies() -> None:
    liars = [ending(f"t{n}") for n in range(40)]
    assert after((0.0, liars), (200.0, liars)).doubts == {"red": MOST_DOUBTS}


def test_a_trial_is_deaf_once_it_has_been_leaving_or_moving_for_too_long_in_one_attempt() -> None:
    leaving = runs("a", "n0", steady=False, leaving=True)
    conduct = after((0.0, [leaving]), (119.0, [leaving]))
    assert conduct.deaf(119.0, 120.0) == set()
    assert conduct.deaf(120.0, 120.0) == {"a"}
    again = after((120.0, [replace(leaving, attempt=2)]), before=conduct)
    assert again.deaf(130.0, 120.0) == set()
