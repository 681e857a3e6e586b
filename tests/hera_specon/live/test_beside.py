"""The page of a run as ``specon run`` serves it: a process that begins when somebody looks, and harms nothing."""

import json
import re
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from hera_specon.live import beside, child
from hera_specon.live.beside import PageBeside
from tests.hera_specon.report.example_run import write_example_run


def address_in(line: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{43}/sweeps/demo-1", line)
    assert found, line
    return found[0]


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=120) as answer:  # noqa: S310 - an address of ours
        return str(answer.read().decode())


def processes() -> list[psutil.Process]:
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if any(beside._CHILD in word for word in process.cmdline())
    ]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_example_run(tmp_path)


def test_it_costs_no_process_until_somebody_looks_and_ends_with_the_run(folder: Path) -> None:
    told: list[str] = []
    with PageBeside(told.append) as page:
        there = address_in(page.locate(folder))
        assert processes() == []
        assert "demo-1" in read(there)
        (serving,) = processes()
        assert serving.nice() == 19
        token = urlsplit(there).path.split("/")[1]
        assert not any(token in word for word in serving.cmdline())
        assert "trial-11" in json.loads(read(f"{there}/standing"))["html"]
    assert told == []
    assert not serving.is_running()
    with pytest.raises(urllib.error.URLError):
        read(there)
    assert token not in (folder / "page.log").read_text()


def test_who_looks_at_the_end_sees_it(folder: Path) -> None:
    part = folder / "01-specon-flowcon"
    (part / "result.json").rename(folder / "later.json")
    (part / "ledger.json").write_text("{}")
    with PageBeside(lambda _: None) as page:
        there = address_in(page.locate(folder))
        assert "data-over" not in json.loads(read(f"{there}/standing"))["html"]
        (folder / "later.json").rename(part / "result.json")
        page.end_soon()
        wait_for(lambda: "data-over" in json.loads(read(f"{there}/standing"))["html"])


def test_one_that_was_killed_is_told_once_and_leaves_no_port_behind(folder: Path) -> None:
    told: list[str] = []
    with PageBeside(told.append) as page:
        there = address_in(page.locate(folder))
        read(there)
        processes()[0].kill()
        wait_for(lambda: bool(told))
        wait_for(lambda: _refused(there))
    assert len(told) == 1
    assert "the page of the run has failed" in told[0]
    assert "the run goes on" in told[0]


def test_one_that_cannot_begin_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_CHILD", "no_such_module")
    told: list[str] = []
    with PageBeside(told.append) as page:
        there = address_in(page.locate(folder))
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            read(there)
        wait_for(lambda: bool(told))
    assert "page.log" in told[0]
    assert "no_such_module" in (folder / "page.log").read_text()


def test_where_nothing_can_listen_the_run_is_told_and_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with PageBeside(lambda _: None) as page:
        assert page.locate(folder).startswith("no page: ")


def test_it_ends_when_nobody_looks_any_more_and_begins_again_for_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    short = tmp_path / "short_child.py"
    short.write_text(f"import {child.__name__} as child\nchild.IDLE_S = 1.0\nmain = child.main\n")
    monkeypatch.setattr(beside, "own_command", lambda _: command_of(short))
    told: list[str] = []
    with PageBeside(told.append) as page:
        there = address_in(page.locate(folder))
        read(there)
        first = page._child
        assert first is not None
        wait_for(lambda: first.poll() is not None)
        assert "demo-1" in read(there)
    assert told == []


def command_of(module: Path) -> list[str]:
    root = Path(__file__).resolve().parents[3]
    path = f"import sys; sys.path[:0] = [{str(root)!r}, {str(module.parent)!r}]"
    return [sys.executable, "-c", f"{path}; from {module.stem} import main; main()"]


def _refused(address: str) -> bool:
    try:
        read(address)
    except OSError:
        return True
    return False
