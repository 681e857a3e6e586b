"""The decisions of a run that was, to be made again in a simulation of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers.core.actions import Action, Decision, Migrate, Proposal, Resize
from controllers.core.errors import SpeconError
from controllers.core.model import NodeName, Snapshot, TrialId


@dataclass(frozen=True)
class Repeated:
    """A policy that proposes each action of ``script`` (time in seconds, action) once its time has come."""

    script: tuple[tuple[float, Action], ...]
    name: str = "repeated"

    @property
    def needs(self) -> frozenset[type[Action]]:
        """Moves and resizes."""
        return frozenset({Resize, Migrate})

    @property
    def state_type(self) -> type[int]:
        """How many actions were proposed."""
        return int

    def initial(self) -> int:
        """Return none."""
        return 0

    def decide(self, snapshot: Snapshot, state: int) -> Decision[int]:
        """Propose what is due by now."""
        due = [action for at, action in self.script[state:] if at <= snapshot.now]
        later = self.script[state + len(due) :]
        proposals = tuple(Proposal(action, "as it was") for action in due)
        return Decision(state + len(due), proposals, later[0][0] if later else None)


def repeated(part: Path, uid: str) -> Repeated:
    """Return the decisions that were carried out in one part of a run's folder; ``uid`` begins its trials' ids."""
    file = part / "actions.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    acted = [line for line in map(json.loads, lines) if line["outcome"] == "done"]
    return Repeated(tuple((float(line["at"]), _action(line, uid)) for line in acted))


def _action(line: Mapping[str, Any], uid: str) -> Action:
    trial = TrialId(str(line["trial"]).removeprefix(f"{uid}."))
    match line["kind"]:
        case "Resize":
            return Resize(trial, line["cpu"])
        case "Migrate":
            return Migrate(trial, tuple(map(NodeName, line.get("nodes") or (line["node"],))))
        case kind:
            message = f"cannot repeat an action of kind {kind!r}: the trials are where they first were"
            raise SpeconError(message)
