"""The page opens in a browser where there is a desktop, and never in a terminal."""

import webbrowser
from pathlib import Path

import pytest

from hera_specon.report.opening import open_page


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that a browser was asked for."""
    found: list[str] = []

    def browser(address: str) -> bool:
        found.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    return found


def test_on_a_desktop_the_page_is_opened(opened: list[str], tmp_path: Path) -> None:
    page = tmp_path / "re port.html"
    assert open_page(page, {"DISPLAY": ":0"}, "linux")
    assert open_page(page, {}, "darwin")
    assert opened == [page.as_uri()] * 2


def test_without_a_desktop_no_browser_takes_the_terminal_over(opened: list[str], tmp_path: Path) -> None:
    assert not open_page(tmp_path / "report.html", {}, "linux")
    assert opened == []
