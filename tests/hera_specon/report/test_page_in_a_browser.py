"""The report in a real headless browser: nothing goes wrong, it fits a phone, and it can be read in the dark."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hera_specon.report.page import write_report
from tests.hera_specon.report.browser import (
    DESKTOP,
    PHONE,
    PHOTOGRAPHS,
    NoBrowserError,
    Scheme,
    browser,
    opened,
    photograph,
)
from tests.hera_specon.report.example_run import write_example_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
MOST_BYTES = 1_000_000


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    try:
        with browser() as found:
            yield found
    except NoBrowserError as error:
        pytest.skip(f"THE REPORT IS NOT TRIED IN A BROWSER: {error}")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(write_example_run(folder), [folder / "report.html"])
    return folder / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_draws_every_chart_complains_of_nothing_and_scrolls_in_one_direction(
    running: Any,  # noqa: ANN401 - a browser of playwright
    report: Path,
    size: tuple[int, int],
    scheme: Scheme,
) -> None:
    with opened(running, report, size, scheme) as seen:
        assert seen.complaints == []
        charts = seen.page.locator(".plot")
        assert charts.count() > 8
        assert seen.page.locator(".plot:has(.main-svg)").count() == charts.count()
        assert not seen.scrolls_sideways


def test_the_dark_page_is_light_on_dark(running: Any, report: Path) -> None:  # noqa: ANN401 - a browser of playwright
    for scheme in ("light", "dark"):
        with opened(running, report, DESKTOP, scheme) as seen:
            ink, behind = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in seen.ink)
            assert (ink > behind) == (scheme == "dark")


def test_a_click_on_a_column_sorts_by_it_and_another_the_other_way(running: Any, report: Path) -> None:  # noqa: ANN401
    with opened(running, report, DESKTOP) as seen:
        table = seen.page.locator("table.sortable").first
        for rising in (True, False):
            table.locator("th", has_text="lr").click()
            rates = [float(text) for text in table.locator("tbody tr td:nth-child(4)").all_inner_texts()]
            assert rates == sorted(rates, reverse=not rising)
            assert len(set(rates)) > 3


def test_a_page_whose_charts_cannot_be_unpacked_says_so_in_their_place(running: Any, report: Path) -> None:  # noqa: ANN401
    page = running.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(report.as_uri())
    page.wait_for_function("document.querySelector('.plot').textContent.includes('too old to unpack')")
    page.close()


def test_the_page_takes_less_than_a_megabyte(report: Path) -> None:
    assert report.stat().st_size < MOST_BYTES


def test_photographs_of_the_page_are_made_at_both_widths(running: Any, report: Path, tmp_path: Path) -> None:  # noqa: ANN401
    photograph(running, report, tmp_path)
    kept = Path(__file__).parents[3] / "docs" / "images"
    for name in PHOTOGRAPHS:
        assert _width((tmp_path / name).read_bytes()) == _width((kept / name).read_bytes())


def _width(png: bytes) -> int:
    return int.from_bytes(png[16:20], "big")
