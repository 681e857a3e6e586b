"""How the attempt in a pod ended, as its main container says. Whatever a pod says of itself is untrusted."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.core.after_attempt import LEFT, Failure, last_line
from controllers.core.kueue import TERMINATION_TARGET
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, epoch, mappings, text, whole
from mlflow_hooks.contract import EXIT_MIGRATE, EXIT_PEERS_LOST

_MOST_WORDS = 300
# Argo's argoexec runs the program, and says of its end what the exit code says too.
_ARGOS_WORDS = re.compile(r"^(time=\S+ level=\w+ .*\bargo=true\b.*|Error: exit status \d+)$", re.MULTILINE)
_NO_FAILURES = frozenset({0, EXIT_PEERS_LOST})
# As the hooks write it where they leave.
_STEP = re.compile(r"\bleft at step (\d{1,15})\b")
_DISRUPTED: Final = frozenset({"DisruptionTarget", TERMINATION_TARGET})
"""Conditions of a pod that is made to leave: Kubernetes' own, where it is evicted, preempted, or ended with its node,
and Kueue's."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """The end of an attempt that left so that its trial goes on.

    ``how`` is as of a failure; ``step`` is how far it says that it came, 0 where it says nothing. ``disrupted`` tells
    that Kubernetes or Kueue made it leave.
    """

    how: Failure
    step: int = 0
    disrupted: bool = False


def failure_of(status: Mapping[str, Any]) -> Failure | None:
    """Return how the main container failed; None where it runs, ended well, or left so that its trial goes on."""
    ended = _end_of(status)
    return None if ended is None or ended.code == EXIT_MIGRATE else ended


def leaving_of(pod: Json, status: Mapping[str, Any]) -> Leaving | None:
    """Return how the main container left so that its trial goes on; None where it did not."""
    ended = _end_of(status)
    if ended is None or ended.code not in LEFT:
        return None
    step = _STEP.search(_said(status))
    return Leaving(ended, int(step[1]) if step else 0, disrupted(pod))


def disrupted(pod: Json) -> bool:
    """Return whether Kubernetes makes a pod leave, or made it."""
    conditions = mappings(pod, "status", "conditions")
    return any(
        text(condition, "type") in _DISRUPTED and text(condition, "status") == "True" for condition in conditions
    )


def _end_of(status: Mapping[str, Any]) -> Failure | None:
    ended = at(status, "state", "terminated")
    code = whole(ended, "exitCode")
    if code is None or code in _NO_FAILURES:
        return None
    began, until = epoch(ended, "startedAt"), epoch(ended, "finishedAt")
    lasted_s = math.inf if began is None or until is None else until - began
    return Failure(code, last_line(_ARGOS_WORDS.sub("", _said(status)))[:_MOST_WORDS], lasted_s)


def _said(status: Mapping[str, Any]) -> str:
    return text(status, "state", "terminated", "message")
