import threading

import pytest

from controllers.core.errors import SpeconError
from hera_specon.live.paced import MOST_BUSY, PacedPart


class Maker:
    """Makes a page that costs CPU, on clocks of its own."""

    def __init__(self, least_s: float = 2.0, cost_s: float = 0.0) -> None:
        self.now = self.worked = 0.0
        self.cost_s = cost_s
        self.made = 0
        self.error: Exception | None = None
        self.paced = PacedPart(self.make, least_s, lambda: self.now, lambda: self.worked)

    def make(self) -> str:
        self.worked += self.cost_s
        self.made += 1
        if self.error is not None:
            raise self.error
        return f"page {self.made}"


def test_it_is_made_only_when_somebody_asks_and_at_most_every_so_often() -> None:
    maker = Maker(least_s=2.0)
    assert maker.made == 0
    for now, shown in ((0.0, "page 1"), (1.9, "page 1"), (2.0, "page 2"), (100.0, "page 3")):
        maker.now = now
        assert maker.paced.get().html == shown


def test_what_costs_much_is_made_seldom() -> None:
    maker = Maker(least_s=2.0, cost_s=1.0)
    maker.paced.get()
    maker.now = 0.99 / MOST_BUSY
    maker.paced.get()
    assert maker.made == 1
    maker.now = 1.0 / MOST_BUSY
    maker.paced.get()
    assert maker.made == 2


def test_the_mark_changes_with_the_page_alone() -> None:
    pages = iter(["same", "same", "other"])
    now = [0.0]
    paced = PacedPart(lambda: next(pages), 1.0, lambda: now[0], lambda: 0.0)
    marks = []
    for at in range(3):
        now[0] = float(at)
        marks.append(paced.get().mark)

    assert marks[0] == marks[1] != marks[2]


@pytest.mark.parametrize("error", [SpeconError("away"), OSError("away"), ZeroDivisionError("away")])
def test_where_it_cannot_be_made_the_last_one_stays_with_the_reason(error: Exception) -> None:
    maker = Maker()
    maker.paced.get()
    maker.now, maker.error = 10.0, error
    failed = maker.paced.get()
    assert failed.html == "page 1"
    assert failed.problem is not None
    assert failed.problem.endswith("away")

    maker.now, maker.error = 20.0, None
    assert (maker.paced.get().html, maker.paced.get().problem) == ("page 3", None)


def test_a_change_that_should_show_is_made_at_once() -> None:
    maker = Maker(cost_s=10.0)
    maker.paced.get()
    maker.paced.expire()
    assert maker.paced.get().html == "page 2"


def test_who_comes_while_it_is_made_gets_the_one_before() -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[int] = []
    now = [0.0]

    def make() -> str:
        calls.append(1)
        if len(calls) == 2:
            begun.set()
            assert go_on.wait(10)
        return f"page {len(calls)}"

    paced = PacedPart(make, 1.0, lambda: now[0], lambda: 0.0)
    paced.get()
    now[0] = 5.0
    other = threading.Thread(target=paced.get)
    other.start()
    assert begun.wait(10)
    assert paced.get().html == "page 1"
    go_on.set()
    other.join()
    assert paced.get().html == "page 2"
