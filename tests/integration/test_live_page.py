"""The page of a real sweep while it runs: it changes without being loaded again, and its button stops a trial."""

import json
import re
from pathlib import Path

import pytest

from tests.hera_specon.report.browser import DESKTOP, LIVE, NoBrowserError, browser, opened, wait_until
from tests.integration.workbench import Workbench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_a_trial_is_stopped_from_the_page_while_the_sweep_runs(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.write(steps=(3000,), rates=(0.01, 0.02))
    process = bench.start("run", "sweep.py", "--page", "--plain", "--nodes", "2")
    try:
        with browser() as chromium:
            assert process.stdout is not None
            said = iter(process.stdout.readline, "")
            address = next(found[0] for line in said if (found := re.search(r"http://127\S*/sweeps/\S*", line)))
            part = bench.newest_run / "00-ahead"
            told = part / "timeline.jsonl"
            bench.wait_for(lambda: told.exists() and '"report"' in told.read_text())
            with opened(chromium, address, DESKTOP, drawn=LIVE) as seen:
                page = seen.page
                page.evaluate("window.kept = 1")
                step = "[...document.querySelectorAll(\"[data-part='trials now'] tbody td:nth-child(6)\")][0].innerText"
                first = page.evaluate(step)
                wait_until(page, f"{step} !== {json.dumps(first)}")
                for number in ("000", "001"):
                    page.once("dialog", lambda dialog: dialog.accept())
                    page.locator(f"button[data-what=stop][data-trial='descent.t{number}']").click(timeout=60_000)
                    wait_until(page, f"document.getElementById('said').textContent.includes('t{number}')")
                page.wait_for_selector("header[data-over]", timeout=200_000)
                assert page.evaluate("window.kept") == 1
        rest, _ = process.communicate(timeout=200)
    except NoBrowserError as error:
        pytest.skip(f"THE LIVE PAGE IS NOT TRIED IN A BROWSER: {error}")
    finally:
        process.kill()
    assert process.returncode == 0, rest
    result = json.loads((part / "result.json").read_text())
    assert [bool(trial["stopped"]) for trial in result["trials"]] == [True, True]
    assert not re.search(r"Traceback|page of the run has failed", rest)
