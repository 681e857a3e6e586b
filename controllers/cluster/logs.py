"""The controller's log: one line for each thing that happened, for machines or for people, without secrets."""

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from controllers.tracking.access import shown

_AUTHORISATION = re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOST_MESSAGE = 4096
# These print whole answers of the API server, pods' environment included, at level debug.
_TALKATIVE = ("kubernetes", "urllib3", "websocket")


def configure_logs(form: Literal["json", "text"], level: str) -> None:
    """Send all logging of this process to standard error in one form.

    Args:
        form: ``json`` writes an object per line: ts (UTC), level, logger, message, and the record's fields.
        level: least level that is written, such as ``info``.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))


def fields(**named: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return ``named`` as what ``extra=`` of a logging call takes."""
    return {"fields": {name: value for name, value in named.items() if value is not None}}


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        line: dict[str, Any] = {**_core(record), "message": _message(record)}
        line |= {name: value for name, value in _fields(record).items() if name not in line}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, default=str))


class TextLines(logging.Formatter):
    """A line for people; a traceback follows on its own lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, fields as name=value at its end."""
        core = _core(record)
        named = "".join(f" {name}={value}" for name, value in _fields(record).items())
        line = f"{core['ts']} {core['level']:7} {core['logger']}: {_message(record)}{named}".replace("\n", "\\n")
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        # Pods and workflows are named in it, and their words could steer a terminal.
        return without_secrets(_CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", line))


def without_secrets(text: str) -> str:
    """Return ``text`` with passwords in URLs and authorisation headers blotted out."""
    return _AUTHORISATION.sub(r"\1 ***", shown(text))


def _core(record: logging.LogRecord) -> dict[str, str]:
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return {"ts": at.replace("+00:00", "Z"), "level": record.levelname.lower(), "logger": record.name}


def _message(record: logging.LogRecord) -> str:
    return record.getMessage()[:_MOST_MESSAGE]


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    given: Mapping[str, Any] = getattr(record, "fields", {})
    return given
