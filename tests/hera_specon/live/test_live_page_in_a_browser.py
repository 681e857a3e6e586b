"""The page of a sweep that runs, in a real headless browser: it changes without being loaded again, and asks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile
from hera_specon.live.local import LocalShelf
from tests.hera_specon.live.served import Served, serving
from tests.hera_specon.report.browser import DESKTOP, LIVE, PHONE, NoBrowserError, browser, opened, wait_until
from tests.hera_specon.report.large_run import write_large_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
Browser = Any
_DO: Final = "window.hacked = 1"
EVIL: Final = (
    f"</script><script>{_DO}</script>",
    f'<img src=x onerror="{_DO}">',
    f'"><svg onload="{_DO}">',
    f'<a href="javascript:{_DO}">a</a>',
    f"' onmouseover='{_DO}' x='",
    "{{ 7 * 7 }}${7*7}",
)


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    try:
        with browser() as found:
            yield found
    except NoBrowserError as error:
        pytest.skip(f"THE LIVE PAGE IS NOT TRIED IN A BROWSER: {error}")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are made again at once, whatever that costs."""
    monkeypatch.setattr("hera_specon.live.paced.MOST_BUSY", 1e9)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(LocalShelf(tmp_path)) as served:
        yield served


def scroll_to(chart: Any) -> None:  # noqa: ANN401 - of playwright
    """Show a chart, and wait until it is drawn."""
    chart.scroll_into_view_if_needed()
    chart.locator(".main-svg").first.wait_for(timeout=120_000)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_five_hundred_trials_fit_a_desktop_and_a_phone(
    running: Browser, served: Served, tmp_path: Path, size: tuple[int, int]
) -> None:
    write_large_run(tmp_path)
    with opened(running, f"{served.address}/sweeps/large-1", size, drawn=LIVE) as seen:
        assert seen.complaints == []
        assert not seen.scrolls_sideways
        assert seen.page.locator("[data-part='trials now'] tbody tr").count() == 500
        charts = seen.page.locator(".plot")
        assert charts.count() >= 4
        assert seen.page.locator(".plot:has(.main-svg)").count() < charts.count()  # nobody has scrolled to them
        for chart in charts.all():
            scroll_to(chart)
        assert seen.complaints == []


@pytest.mark.usefixtures("quick")
def test_it_changes_without_being_loaded_again_and_keeps_what_a_person_did(
    running: Browser, served: Served, tmp_path: Path
) -> None:
    folder = write_large_run(tmp_path, trials=12, ended=2, name="small-1")
    with opened(running, f"{served.address}/sweeps/small-1", DESKTOP, drawn=LIVE) as seen:
        page = seen.page
        page.evaluate("window.kept = 1")
        page.locator("[data-part='trials now'] th", has_text="objective").click()
        page.locator("#policy").fill("specon:interval=")
        learning = page.locator("[data-part='learning'] .plot")
        scroll_to(learning)
        drawn = learning.element_handle()
        zoom = "(plot) => Plotly.relayout(plot, {'xaxis.range': [1, 7]})"
        page.evaluate(zoom, drawn)
        now = TimelineEvent(200.0, EventKind.REPORT, "large.t003", value=0.0078125, step=9)
        TimelineFile(folder / "00-ahead" / "timeline.jsonl").append([now])

        wait_until(page, "document.querySelector('.tile').textContent.includes('0.007812')")
        wait_until(
            page,
            "document.querySelector('[data-part=learning] .plot').data.some((curve) => curve.y.includes(0.0078125))",
        )

        assert page.evaluate("window.kept") == 1
        assert page.locator("[data-part='trials now'] tbody tr").first.inner_text().startswith("large.t003")
        assert page.locator("#policy").input_value() == "specon:interval="
        assert page.evaluate("(plot) => plot.isConnected && plot.layout.xaxis.range.join()", drawn) == "1,7"
        assert seen.complaints == []


def test_buttons_stop_a_trial_and_let_it_go_on_only_where_confirmed(
    running: Browser, served: Served, tmp_path: Path
) -> None:
    folder = write_large_run(tmp_path, trials=12, ended=2, name="small-1")
    asked = folder / "00-ahead" / "asked.json"
    with opened(running, f"{served.address}/sweeps/small-1", PHONE, drawn=LIVE) as seen:
        page = seen.page
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.locator("button[data-what=stop][data-trial='large.t003']").click()
        page.locator("button[data-what=pause][data-trial='large.t004']").click()
        wait_until(page, "document.getElementById('said').textContent.includes('asked to pause')")
        page.once("dialog", lambda dialog: dialog.accept())
        page.locator("button[data-what=stop][data-trial='large.t005']").click()
        wait_until(page, "document.getElementById('said').textContent.includes('large.t005: asked to stop')")
        page.locator("button[data-what=resume][data-trial='large.t004']").click()
        wait_until(page, "document.getElementById('said').textContent.includes('goes on')")
        assert json.loads(asked.read_text()) == {"large.t005": "stop"}

        page.locator("#policy").fill("nonsense")
        page.locator("button[data-what=policy]").click()
        wait_until(page, "document.querySelector('#said.problem')?.textContent.includes('unknown policy')")
        assert [told for told in seen.complaints if "409" not in told] == []


def test_names_of_others_run_nothing(running: Browser, served: Served, tmp_path: Path) -> None:
    folder = write_large_run(tmp_path, trials=4, ended=1, name="small-1")
    part = folder / "00-ahead"
    about = {"name": EVIL[1], "policies": [EVIL[0]], "objective": EVIL[3], "file": EVIL[2], "started": EVIL[4]}
    (folder / "run.json").write_text(json.dumps(about))
    events = [
        event
        for at, name in enumerate(EVIL, start=300)
        for event in (
            TimelineEvent(at, EventKind.PHASE, name, phase="running", node=name, cpu=1.0, attempt=1, reason=name),
            TimelineEvent(at + 0.1, EventKind.REPORT, name, value=0.5, step=1),
            TimelineEvent(at + 0.2, EventKind.REPORT, name, value=0.4, step=2),
            TimelineEvent(at + 0.3, EventKind.MOVE, name, node=name, reason=name),
            TimelineEvent(at + 0.4, EventKind.OUTLOOK, name, reason=name),
            TimelineEvent(at + 0.5, EventKind.USAGE, name, node=name, value=0.5),
        )
    ]
    TimelineFile(part / "timeline.jsonl").append(events)
    actions = [{"at": 1, "kind": name, "trial": name, "reason": name, "outcome": name} for name in EVIL]
    (part / "actions.jsonl").write_text("".join(json.dumps(action) + "\n" for action in actions))

    for path in ("/", "/sweeps/small-1"):
        drawn = LIVE if path != "/" else "table"
        with opened(running, f"{served.address}{path}", DESKTOP, drawn=drawn) as seen:
            seen.page.mouse.move(600, 500)
            seen.page.wait_for_timeout(500)
            assert seen.complaints == []
            assert seen.page.evaluate("window.hacked") is None
            assert seen.page.locator("[onerror], [onload], [onmouseover], a[href^='javascript']").count() == 0
    with opened(running, f"{served.address}/sweeps/small-1", DESKTOP, drawn=LIVE) as seen:
        named = seen.page.locator("[data-part='trials now'] tbody tr", has_text=EVIL[1])
        assert named.count() == 1
        seen.page.once("dialog", lambda dialog: dialog.accept())
        named.locator("button[data-what=stop]").click()
        wait_until(seen.page, "document.getElementById('said').textContent.includes('asked to stop')")
        assert json.loads((part / "asked.json").read_text()) == {EVIL[1]: "stop"}


def test_a_page_whose_server_has_gone_says_so(running: Browser, tmp_path: Path) -> None:
    write_large_run(tmp_path, trials=4, ended=1, name="small-1")
    with serving(LocalShelf(tmp_path)) as served:
        page = running.new_page()
        page.goto(f"{served.address}/sweeps/small-1")
        page.wait_for_selector(LIVE, state="attached", timeout=120_000)
    wait_until(page, "document.querySelector('#problem.problem')?.textContent.includes('does not answer here')")
    page.close()
