"""Wait for a workflow's end, telling how far it has come."""

import time
from collections.abc import Callable
from typing import Any, Final

import click

from controllers.worlds.argo.api import UnavailableError
from controllers.worlds.argo.untrusted import text
from hera_specon.cli.failures import Failure
from hera_specon.cluster.channel import ArgoServerError

_EVERY_S: Final = 2.0
_PATIENCE_S: Final = 120.0
"""Seconds without an answer after which waiting is given up; the workflow runs on."""
ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


def wait_for_end(look: Callable[[], dict[str, Any]], name: str, every_s: float = _EVERY_S) -> None:
    """Look again and again until the workflow is over; each change is told on standard error.

    Raises:
        Failure: It did not succeed, or nobody answered for long.
    """
    told = ""
    heard_at = time.monotonic()
    while True:
        try:
            workflow = look()
            heard_at = time.monotonic()
        except (UnavailableError, ArgoServerError) as error:
            if time.monotonic() - heard_at > _PATIENCE_S:
                message = f"{error}\nThe workflow runs on; see it with: specon status {name}"
                raise Failure(message) from error
            workflow = {}
        phase, progress = text(workflow, "status", "phase"), text(workflow, "status", "progress")
        line = f"{name}: {phase or 'Pending'}" + (f", {progress} steps" if progress else "")
        if workflow and line != told:
            click.echo(line, err=True)
            told = line
        if phase in ENDED:
            break
        time.sleep(every_s)
    if phase != "Succeeded":
        message = f"workflow {name} {phase.lower()}: {text(workflow, 'status', 'message') or 'no reason given'}"
        raise Failure(message)
