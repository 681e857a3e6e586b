"""The record of what a policy wanted, action by action, and of what became of it."""

import json
from pathlib import Path

from controllers.core.actions import Action, written
from controllers.core.ports import Outcome
from controllers.record.lines import LineFile


class ActionFile:
    """Appends each action that was wanted to ``actions.jsonl`` of ``folder``, with why and what became of it."""

    def __init__(self, folder: Path) -> None:
        self._lines = LineFile(folder / "actions.jsonl")

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Append the action."""
        came_of_it = {"outcome": outcome.kind, "detail": outcome.detail}
        line = {"at": now, "kind": type(action).__name__, **written(action), "reason": reason, **came_of_it}
        self._lines.append(json.dumps(line) + "\n")
