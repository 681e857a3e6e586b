"""The controller's log: one object per line, and no secret in it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from controllers.cluster.logs import JsonLines, TextLines, configure_logs, fields


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("test-of-logs")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler.setFormatter(JsonLines())
    yield logger, stream
    logger.removeHandler(handler)


def test_a_line_is_an_object_with_time_level_logger_message_and_fields(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    log[0].warning("resize of %s", "t1", extra=fields(workflow="w", cpu=0.5, node=None))
    line = json.loads(log[1].getvalue())
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "test-of-logs",
        "message": "resize of t1",
        "workflow": "w",
        "cpu": 0.5,
    }


def test_an_error_with_its_traceback_is_one_line(log: tuple[logging.Logger, io.StringIO]) -> None:
    try:
        int("two\nlines")
    except ValueError:
        log[0].exception("failed")
    (line,) = log[1].getvalue().splitlines()
    assert "ValueError: invalid literal" in json.loads(line)["error"]


def test_what_others_wrote_cannot_forge_a_line_or_a_field(log: tuple[logging.Logger, io.StringIO]) -> None:
    log[0].info('x\n{"level": "error"}', extra=fields(level="forged"))
    (line,) = log[1].getvalue().splitlines()
    assert json.loads(line)["level"] == "info"


@pytest.mark.parametrize("form", [JsonLines(), TextLines()])
@pytest.mark.parametrize(
    "text",
    ["http://user:hunter2secret@mlflow:5000/x", "Authorization: Bearer hunter2secret.abc", "basic hunter2secret=="],
)
def test_passwords_and_tokens_are_blotted_out(form: logging.Formatter, text: str) -> None:
    record = logging.LogRecord("x", logging.INFO, "x", 1, "%s", (text,), None)
    record.fields = {"uri": text}
    assert "hunter2secret" not in form.format(record)


def test_libraries_that_print_whole_answers_stay_quiet_at_level_debug() -> None:
    kept = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        configure_logs("json", "debug")
        assert not logging.getLogger("kubernetes.client.rest").isEnabledFor(logging.DEBUG)
        assert logging.getLogger("controllers").isEnabledFor(logging.DEBUG)
    finally:
        logging.getLogger().handlers[:] = kept[0]
        logging.getLogger().setLevel(kept[1])
