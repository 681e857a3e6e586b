"""What follows the end of an attempt: each row of the table, and what no row must do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from controllers.core.after_attempt import (
    MOST_BARREN,
    AttemptEnd,
    AttemptHistory,
    EndedBy,
    Failure,
    Following,
    Reason,
    Then,
    after_attempt,
    pause_s,
)
from controllers.core.model import Sample
from controllers.core.progress import came_to_its_end, tells_another_length

NOW: Final = 100.0
PAUSE_S: Final = 7.0
ASKED: Final = (EndedBy.MOVE, EndedBy.PAUSE, EndedBy.STOP)
NEW: Final = AttemptHistory()
BARREN: Final = AttemptHistory(barren=MOST_BARREN - 1, gained=5)


@dataclass(frozen=True)
class Forgives:
    """Forgives so many failures."""

    failures: int

    def allows(self, failures: int, exit_code: int, /, *, duration_s: float = 0.0) -> bool:
        del duration_s
        assert exit_code not in {0, 75, 143}, "a rule would take it for a move"
        return failures <= self.failures

    def wait_s(self, failures: int, /) -> float:
        return PAUSE_S * failures


def ended(
    code: int,
    by: EndedBy = EndedBy.ITSELF,
    *,
    words: str = "",
    lasted_s: float = 1.0,
    **of: Any,  # noqa: ANN401 - further fields
) -> AttemptEnd:
    return replace(AttemptEnd(Failure(code, words, lasted_s), NOW, by), **of)


def follows(history: AttemptHistory, end: AttemptEnd, retries: int | None = 1) -> Following:
    return after_attempt(history, end, None if retries is None else Forgives(retries))


def again(history: AttemptHistory, why: Reason, after_s: float = 0.0) -> Following:
    return Following(Then.AGAIN, why, history, NOW + after_s)


TOO_OFTEN: Final = Reason.FAILED_TOO_OFTEN
WORDS: Final = "ValueError: x"
ALIKE: Final = AttemptHistory(failures=1, failure=f"1: {WORDS}")
TABLE: Final[dict[int, Sequence[tuple[Following, Following]]]] = {
    1: [(follows(BARREN, ended(0)), Following(Then.SUCCEEDED, Reason.ENDED, BARREN))],
    2: [
        (follows(NEW, ended(0, by, through=True)), Following(Then.SUCCEEDED, Reason.ENDED, NEW))
        for by in (*ASKED, EndedBy.LOSS)
    ],
    3: [
        (follows(NEW, ended(code, EndedBy.STOP)), Following(Then.STOPPED, Reason.ASKED, NEW, NOW))
        for code in (0, 1, 75, 130, 137, 139, 143)
    ],
    4: [
        (follows(NEW, ended(code, EndedBy.PAUSE)), Following(Then.WAITS, Reason.ASKED, NEW, NOW))
        for code in (0, 1, 75, 130, 137, 139, 143)
    ],
    5: [(follows(NEW, ended(code, EndedBy.MOVE)), again(NEW, Reason.ASKED)) for code in (0, 1, 75, 130, 137, 139, 143)],
    6: [
        (follows(NEW, ended(code, EndedBy.LOSS)), again(AttemptHistory(barren=1), Reason.LOST, pause_s(1)))
        for code in (0, 1, 137)
    ]
    + [(follows(BARREN, ended(137, EndedBy.LOSS, gained=6)), again(AttemptHistory(gained=6), Reason.LOST))],
    7: [(follows(NEW, ended(137, EndedBy.MEMORY), retries=None), again(AttemptHistory(alone=True), Reason.MEMORY))],
    8: [
        (
            follows(AttemptHistory(alone=True), ended(137, EndedBy.MEMORY), retries=9),
            Following(Then.FAILED, Reason.MEMORY, AttemptHistory(failures=1, alone=True)),
        )
    ],
    9: [
        (follows(NEW, ended(75), retries=None), again(AttemptHistory(barren=1), Reason.LEFT, pause_s(1))),
        (follows(BARREN, ended(75, gained=6), retries=None), again(AttemptHistory(gained=6), Reason.LEFT)),
    ],
    10: [
        (follows(NEW, ended(code), retries=retries), Following(Then.FAILED, TOO_OFTEN, AttemptHistory(failures=1)))
        for code in (1, 3, 76, 130, 134, 137, 139, 143)
        for retries in (0, None)
    ]
    + [
        (
            follows(NEW, ended(75, leaves=False), retries=None),
            Following(Then.FAILED, TOO_OFTEN, AttemptHistory(failures=1)),
        )
    ]
    + [
        (
            follows(BARREN, end, retries=0),
            Following(Then.FAILED, TOO_OFTEN, replace(BARREN, failures=1, barren=MOST_BARREN)),
        )
        for end in (ended(75), ended(0, EndedBy.LOSS))
    ],
    11: [
        (
            follows(ALIKE, ended(1, words=WORDS), retries=9),
            Following(Then.FAILED, Reason.FAILED_ALIKE, replace(ALIKE, failures=2)),
        )
    ],
    12: [
        (follows(NEW, ended(code)), again(AttemptHistory(failures=1), Reason.FAILED, PAUSE_S))
        for code in (1, 3, 76, 130, 134, 137, 139, 143)
    ]
    + [(follows(BARREN, ended(75)), again(replace(BARREN, failures=1, barren=MOST_BARREN), Reason.FAILED, PAUSE_S))],
}


def rows() -> Iterator[int]:
    """Yield the numbers in the table that the docstring prints."""
    for line in (after_attempt.__doc__ or "").splitlines():
        first = line.strip().strip("|").split("|")[0].strip()
        if first.isdecimal():
            yield int(first)


def test_the_table_that_is_printed_is_the_one_that_is_tested() -> None:
    assert list(rows()) == list(TABLE)


@pytest.mark.parametrize("row", TABLE)
def test_each_row_of_the_table_holds(row: int) -> None:
    for found, expected in TABLE[row]:
        assert found == expected


@pytest.mark.parametrize("words", ["", "another error"])
def test_other_words_or_none_are_another_failure(words: str) -> None:
    assert follows(ALIKE, ended(1, words=words), retries=9).then is Then.AGAIN


@pytest.mark.parametrize(("code", "given_up"), [(139, True), (134, True), (130, True), (137, False), (143, False)])
def test_a_program_that_crashes_twice_alike_is_given_up_and_one_that_others_may_have_ended_is_not(
    code: int,
    given_up: bool,  # noqa: FBT001 - as parametrized
) -> None:
    once = follows(NEW, ended(code, words=WORDS), retries=9)
    assert follows(once.history, ended(code, words=WORDS), retries=9).given_up is given_up


def test_a_failure_that_came_late_is_tried_again_however_alike() -> None:
    assert follows(ALIKE, ended(1, words=WORDS, lasted_s=61.0), retries=9).then is Then.AGAIN


def test_who_was_asked_in_between_did_not_fail_twice_in_a_row() -> None:
    asked = follows(ALIKE, ended(1, EndedBy.PAUSE, words=WORDS), retries=9)
    assert follows(asked.history, ended(1, words=WORDS), retries=9).then is Then.AGAIN


@pytest.mark.parametrize("code", [1, 130, 137, 143])
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_as_many_failures_are_forgiven_as_the_rule_says(code: int, retries: int) -> None:
    history, attempts = NEW, 0
    while (found := follows(history, ended(code), retries)).then is Then.AGAIN:
        history, attempts = found.history, attempts + 1
    assert (attempts, found.then, found.history.failures) == (retries, Then.FAILED, retries + 1)


@pytest.mark.parametrize("end", [ended(75), ended(143, EndedBy.LOSS)], ids=["left", "lost"])
def test_attempts_that_leave_for_nothing_come_to_an_end_and_their_pauses_grow(end: AttemptEnd) -> None:
    history, times = NEW, list[float]()
    while (found := follows(history, end, retries=0)).then is Then.AGAIN:
        history, times = found.history, [*times, found.at]
    assert times == sorted(set(times))
    assert (len(times), found.then) == (MOST_BARREN - 1, Then.FAILED)


def test_who_is_asked_again_and_again_has_never_failed() -> None:
    history = NEW
    for _ in range(1000):
        history = follows(history, ended(1, EndedBy.MOVE), retries=0).history
    assert history == NEW


def sample(step: int, total: int | None = None) -> Sample:
    return Sample(value=1.0, step=step, at=0.0, steps_total=total)


@pytest.mark.parametrize(
    ("newest", "others", "through"),
    [
        pytest.param(None, [], False, id="told nothing"),
        pytest.param(None, [23], False, id="told nothing, others did"),
        pytest.param(sample(23), [], False, id="nobody has succeeded yet"),
        pytest.param(sample(23), [23, 23], True, id="as many as all others"),
        pytest.param(sample(22), [23], False, id="fewer"),
        pytest.param(sample(24), [23], False, id="more: its length is its own"),
        pytest.param(sample(23), [23, 11], False, id="the others differ"),
        pytest.param(sample(0), [0], False, id="all at step 0"),
        pytest.param(sample(23, 24), [], True, id="its last step"),
        pytest.param(sample(11, 24), [11], False, id="its total says more"),
    ],
)
def test_a_program_that_was_asked_is_through_only_where_its_values_say_so(
    newest: Sample | None,
    others: list[int],
    through: bool,  # noqa: FBT001 - as parametrized
) -> None:
    assert came_to_its_end(newest, map(sample, others)) is through


@pytest.mark.parametrize(
    ("own", "of_other", "step", "another"),
    [
        pytest.param({"epochs": 30}, {"epochs": 10}, 10, True, id="steps from 1"),
        pytest.param({"epochs": 30}, {"epochs": 10}, 9, True, id="steps from 0"),
        pytest.param({"epochs": "30"}, {"epochs": "10"}, 9, True, id="as text"),
        pytest.param({"lr": 0.1, "epochs": 10}, {"lr": 0.2, "epochs": 10}, 9, False, id="as many of them"),
        pytest.param({"lr": 0.1}, {"lr": 0.2}, 9, False, id="nothing that tells a length"),
        pytest.param({"hidden": 64}, {"hidden": 32}, 9, False, id="another number"),
    ],
)
def test_a_trial_that_is_to_train_longer_is_not_through_where_another_is(
    own: dict[str, object],
    of_other: dict[str, object],
    step: int,
    another: bool,  # noqa: FBT001 - as parametrized
) -> None:
    assert tells_another_length(own, of_other, sample(step)) is another
