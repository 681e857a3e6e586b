"""A headless browser for the report page. ``python -m tests.hera_specon.report.browser docs/images`` photographs it."""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from hera_specon.report.page import write_report
from tests.hera_specon.report.example_run import write_example_run

Scheme = Literal["light", "dark"]
DESKTOP: Final = (1280, 1000)
PHONE: Final = (390, 844)
PHOTOGRAPHS: Final[Mapping[str, tuple[tuple[int, int], Scheme]]] = {
    "report.png": (DESKTOP, "light"),
    "report-phone.png": (PHONE, "dark"),
}
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_DRAWN: Final = "html[data-drawn]"
LIVE: Final = "html[data-standing][data-report]"
"""A page that is served and has drawn both its parts."""


class NoBrowserError(Exception):
    """There is no browser here, or nothing to drive it with."""


@dataclass
class Opened:
    """A page as a browser shows it; ``complaints`` are errors and warnings that it told of."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    @property
    def scrolls_sideways(self) -> bool:
        """Whether the page as a whole is wider than the window."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))

    @property
    def ink(self) -> tuple[str, str]:
        """Colours of its text and of what is behind it."""
        style = "getComputedStyle(document.body)"
        found = self.page.evaluate(f"[{style}.color, {style}.backgroundColor]")
        return found[0], found[1]


@contextmanager
def browser() -> Iterator[Any]:
    """Run a headless Chromium of this machine.

    Raises:
        NoBrowserError: there is none, or playwright is not installed.
    """
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser to drive
    except ImportError as error:
        message = "playwright is not installed (pip install playwright)"
        raise NoBrowserError(message) from error
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        message = "there is no Chromium (apt-get install chromium)"
        raise NoBrowserError(message)
    with sync_playwright() as playwright:
        # Root, as CI runs, gets no sandbox; the page is our own.
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


@contextmanager
def opened(
    running: Any,  # noqa: ANN401 - a browser of playwright
    file: Path | str,
    size: tuple[int, int],
    scheme: Scheme = "light",
    drawn: str = _DRAWN,
) -> Iterator[Opened]:
    """Show ``file``, or what an address leads to, in a window of ``size`` pixels, and wait until it is ``drawn``."""
    width, height = size
    found = Opened(running.new_page(viewport={"width": width, "height": height}, color_scheme=scheme))
    found.page.on("console", lambda message: _note(found, message.type, message.text))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("requestfailed", lambda request: _note_failed(found, request))
    try:
        found.page.goto(file.as_uri() if isinstance(file, Path) else file)
        found.page.wait_for_selector(drawn, state="attached", timeout=120_000)
        yield found
    finally:
        found.page.close()


def _note_failed(found: Opened, request: Any) -> None:  # noqa: ANN401 - of playwright
    # A page that is served gives up a question that takes long, and asks again.
    if "ERR_ABORTED" not in str(request.failure):
        found.complaints.append(f"asked for {request.url}")


def _note(found: Opened, kind: str, text: str) -> None:
    if kind in {"error", "warning"}:
        found.complaints.append(f"{kind}: {text}")


def wait_until(page: Any, holds: str) -> None:  # noqa: ANN401 - of playwright
    """Wait until an expression holds on the page: playwright's own way is refused by the page's security policy."""
    end = time.monotonic() + 60
    while not page.evaluate(holds):
        assert time.monotonic() < end, holds
        page.wait_for_timeout(200)


def photograph(running: Any, page: Path, folder: Path) -> None:  # noqa: ANN401 - a browser of playwright
    """Write what a person sees of ``page`` first, at both widths, to ``folder``."""
    for name, (size, scheme) in PHOTOGRAPHS.items():
        with opened(running, page, size, scheme) as seen:
            seen.page.screenshot(path=folder / name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, browser() as chromium:
        report = Path(made) / "report.html"
        write_report(write_example_run(Path(made)), [report])
        photograph(chromium, report, Path(sys.argv[1]))
