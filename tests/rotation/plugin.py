"""A plugin of all tests, for the rotation: it runs only chosen tests, and measures how long each takes.

``--only=FILE`` runs the test functions that the file names, one a line; ``--seconds=FILE`` adds what they took to a
JSON file for ``python -m tests.rotation balance``.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

LONG_MARKS: Final = frozenset({"slow", "cluster", "adapter", "faults", "scale"})
"""A test that carries one of these marks takes its turn; all others are quick and run with every landing."""
LONG_TESTS: Final[pytest.StashKey[frozenset[str]]] = pytest.StashKey()
"""All long tests that were collected, before any was left out."""
_CHOSEN: Final[pytest.StashKey[frozenset[str] | None]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("rotation", "slices of the long tests (python -m tests.rotation --help)")
    group.addoption("--only", metavar="FILE", help="run the test functions that FILE names, one a line")
    group.addoption("--seconds", metavar="FILE", help="add the seconds that each test function took to this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    """Read which tests are chosen; have the process that hears of all tests count their seconds."""
    only = config.getoption("--only")
    config.stash[_CHOSEN] = frozenset(Path(only).read_text(encoding="utf-8").split()) if only else None
    if config.getoption("--seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Seconds(config, Path(config.getoption("--seconds"))))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read a file of tests that has no chosen one."""
    chosen = config.stash[_CHOSEN]
    if chosen is None or not collection_path.name.startswith("test_"):
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    return None if any(test.startswith(f"{file}::") for test in chosen) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not chosen."""
    config.stash[LONG_TESTS] = frozenset(function_of(item.nodeid) for item in items if is_long(item))
    chosen = config.stash[_CHOSEN]
    if chosen is not None:
        out = [item for item in items if function_of(item.nodeid) not in chosen]
        items[:] = [item for item in items if function_of(item.nodeid) in chosen]
        config.hook.pytest_deselected(items=out)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A slice may have no test of a suite: that is no failure."""
    if session.config.stash[_CHOSEN] is not None and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def is_long(item: pytest.Item) -> bool:
    """Whether a test takes its turn instead of running with every landing."""
    return any(mark.name in LONG_MARKS for mark in item.iter_markers())


def function_of(nodeid: str) -> str:
    """Return the name of a test without its parameters."""
    return nodeid.partition("[")[0]


class _Seconds:
    """Counts the wall-clock seconds of each long test function: a share of them where several run at a time."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._file = file
        self._at_a_time = len(config.getoption("tx", default=None) or [0])
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if LONG_MARKS & report.keywords.keys():
            self._seconds[function_of(report.nodeid)] += report.duration / self._at_a_time

    def pytest_sessionfinish(self) -> None:
        known = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(known | dict(self._seconds), indent=1), encoding="utf-8")
