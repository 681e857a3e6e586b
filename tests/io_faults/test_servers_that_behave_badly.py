"""A server that never answers, or half, or asks for patience: bounded waits, and nothing of it is lost."""

import email.utils
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kubernetes import client

from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import TooManyRequestsError, UnavailableError
from mlflow_hooks.delivery import deliver_leftovers
from mlflow_hooks.journal import Journal, count_unsent
from mlflow_hooks.points import Point
from mlflow_hooks.sender import Sender
from mlflow_hooks.state_folder import Identity, write_identity
from mlflow_hooks.tracking_server import MOST_REST_S, RestServer, TrackingError
from tests.io_faults.bad_server import HALF, BadServer, refusal

SHORT_S = 0.3


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder with three points that nobody has."""
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", str(SHORT_S))
    kept = tmp_path / "s.a"
    kept.mkdir()
    write_identity(kept, Identity("s.a", "a", "e", None, None, {}))
    journal = Journal(kept)
    journal.append([Point("loss", 0.5, step, 1) for step in range(3)])
    journal.close()
    return kept


@pytest.mark.parametrize("answer", [b"", HALF, refusal("503 Away"), refusal("429 Busy", "9999999999999")])
def test_what_mlflow_does_not_take_waits_in_the_folder(
    folder: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    server = stack.enter_context(BadServer(answer).serving())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
    assert deliver_leftovers(folder, deadline_s=1.0) == 3
    sender = Sender(folder, lambda: True)
    sender.start()
    assert not sender.finish(1.0)
    assert server.asked
    assert count_unsent(folder) == 3


@pytest.mark.parametrize("answer", [b"", HALF], ids=["nothing", "half"])
def test_a_request_to_mlflow_that_is_not_answered_ends(folder: Path, stack: ExitStack, answer: bytes) -> None:
    del folder
    server = stack.enter_context(BadServer(answer).serving())
    with pytest.raises(TrackingError):
        RestServer(server.url).is_active("r")


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("7", 7.0, 7.0),
        (timedelta(seconds=25), 1.0, 25.0),
        (timedelta(days=-1), 0.0, 0.0),
        ("9" * 400, MOST_REST_S, MOST_REST_S),
        ("-5", 0.0, 0.0),
        ("soon", 0.0, 0.0),
        ("nan", 0.0, 0.0),
    ],
)
@pytest.mark.parametrize("status", ["429 Busy", "503 Away"])
def test_a_busy_mlflow_is_left_alone_as_long_as_it_asks_within_reason(
    stack: ExitStack, asked: str | timedelta, least: float, most: float, status: str
) -> None:
    if isinstance(asked, timedelta):  # as a date, which has to be near when it is read
        asked = email.utils.format_datetime(datetime.now(UTC) + asked, usegmt=True)
    server = stack.enter_context(BadServer(refusal(status, asked)).serving())
    with pytest.raises(TrackingError) as told:
        RestServer(server.url).is_active("r")
    assert least <= told.value.rest_s <= most


def test_a_busy_mlflow_is_not_asked_again_before_its_time(
    folder: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stack.enter_context(BadServer(refusal("429 Busy", "20")).serving())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
    deliver_leftovers(folder, deadline_s=1.5)
    assert server.asked == 1


def api_of(server: BadServer) -> KubeApi:
    configuration = client.Configuration()
    configuration.host = server.url
    return KubeApi(configuration, read_s=SHORT_S)


@pytest.mark.parametrize("answer", [b"", HALF], ids=["nothing", "half"])
def test_an_api_server_that_does_not_answer_is_given_up(stack: ExitStack, answer: bytes) -> None:
    server = stack.enter_context(BadServer(answer).serving())
    with pytest.raises(UnavailableError):
        api_of(server).get("/api/v1/pods")


@pytest.mark.parametrize("status", ["429 Busy", "503 Away"])
@pytest.mark.parametrize(
    "asked",
    ["3600", email.utils.format_datetime(datetime.now(UTC) + timedelta(days=900))],
    # The name of a test must not tell the time: two workers that collect in different seconds see different tests.
    ids=["seconds", "date"],
)
def test_a_busy_api_server_is_left_alone_within_reason(stack: ExitStack, status: str, asked: str) -> None:
    server = stack.enter_context(BadServer(refusal(status, asked)).serving())
    api = api_of(server)
    with pytest.raises(UnavailableError):
        api.get("/api/v1/pods")
    with pytest.raises(TooManyRequestsError, match="left alone"):
        api.get("/api/v1/pods")
    assert server.asked == 1
    assert api._reading.until <= time.monotonic() + SHORT_S


def test_a_retry_after_without_sense_counts_as_a_second_at_least(stack: ExitStack) -> None:
    server = stack.enter_context(BadServer(refusal("429 Busy", "whenever")).serving())
    configuration = client.Configuration()
    configuration.host = server.url
    api = KubeApi(configuration)
    with pytest.raises(TooManyRequestsError):
        api.get("/api/v1/pods")
    assert 0.5 < api._reading.until - time.monotonic() <= 1.0
