"""What all tests share."""

import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.property_examples import examples

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

pytest_plugins = ["tests.cluster.fixtures", "tests.rotation.plugin"]

# How long an example takes says something of the machine, and nothing of what is tested.
settings.register_profile("untimed", deadline=None, max_examples=examples(100))
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> "MlflowClient":
    """A client of a real MLflow store in an SQLite file of its own."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - seconds that most tests can do without

    return MlflowClient(f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}")


def pytest_runtest_teardown() -> None:
    """Take back what a sweep in this very process set for MLflow: a later test's command would take it as given."""
    access = sys.modules.get("controllers.tracking.access")
    if access is not None:
        for name in access._ours & access._NOT_FOR_TRIALS:
            os.environ.pop(name, None)
            access._ours.discard(name)


def pytest_configure() -> None:
    """Heed Ctrl+C: a shell that starts tests in its background has them ignore it, and all that they start as well."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run beside one another, begin with the slow ones and end with those that must run alone."""
    if _is_worker():
        items.sort(key=lambda item: (_is_alone(item), item.get_closest_marker("slow") is None))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run no test beside one that is marked ``alone``. Outside of its timeout, as waiting is none of its doing."""
    if not _is_worker():
        return (yield)
    locks = item.config.cache.mkdir("beside")
    # A test that must run alone keeps the door while it waits for the room: no other can slip in before it.
    with _locked(locks / "door", fcntl.LOCK_EX):
        room = ExitStack()
        room.enter_context(_locked(locks / "room", fcntl.LOCK_EX if _is_alone(item) else fcntl.LOCK_SH))
    with room:
        return (yield)


@contextmanager
def _locked(file: Path, how: int) -> Iterator[None]:
    with file.open("w") as held:
        fcntl.flock(held, how)
        try:
            yield
        finally:
            # Closing is not enough where a process was forked that has the file open, too.
            fcntl.flock(held, fcntl.LOCK_UN)


def _is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None
