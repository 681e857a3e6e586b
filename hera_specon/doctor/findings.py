"""What a check says. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check: what was found and, where it is not ok, what to do and the command for that."""

    subject: str
    verdict: Verdict
    found: str
    advice: str = ""
    command: str = ""


def ok(subject: str, found: str) -> Finding:
    """Return that nothing is wrong."""
    return Finding(subject, Verdict.OK, found)


def warning(subject: str, found: str, advice: str, command: str = "") -> Finding:
    """Return what costs something, but stops no trial."""
    return Finding(subject, Verdict.WARNING, found, advice, command)


def fault(subject: str, found: str, advice: str, command: str = "") -> Finding:
    """Return what stops a sweep, or loses its checkpoints."""
    return Finding(subject, Verdict.FAULT, found, advice, command)


def unknown(subject: str, found: str, advice: str, command: str = "") -> Finding:
    """Return what could not be found out."""
    return Finding(subject, Verdict.UNKNOWN, found, advice, command)


def worst(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on all together; what could not be found out is no fault."""
    found = {finding.verdict for finding in findings}
    return next((verdict for verdict in (Verdict.FAULT, Verdict.WARNING) if verdict in found), Verdict.OK)
