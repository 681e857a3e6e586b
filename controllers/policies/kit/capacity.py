"""What is requested of each node, while actions are tried one after another."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.core.model import Action, Migrate, Node, NodeName, Phase, Place, Resize, Snapshot, Trial, TrialId

SLACK = 1e-9
"""Cores by which sums of floats may miss: far below a millicore."""


@dataclass(slots=True)
class _Load:
    """Requests on a node: ``cpu`` as they are, ``base_cpu`` as their authors wrote them, in cores; bytes."""

    cpu: float = 0.0
    base_cpu: float = 0.0
    memory: float = 0.0


@dataclass(slots=True)
class Ledger:
    """Requests on every node, with those of moves under way counted at both ends.

    The source of a move is free only once its attempt has ended; at the destination the next attempt
    may ask for its present or for its original CPU, so the larger is kept for it.
    """

    nodes: Mapping[NodeName, Node]
    trials: Mapping[TrialId, Trial]
    _loads: dict[NodeName, _Load] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Ledger":
        """Return the ledger of what ``snapshot`` shows."""
        trials = {trial.id: trial for trial in sorted(snapshot.trials, key=lambda trial: trial.id)}
        ledger = cls({node.name: node for node in snapshot.nodes}, trials)
        for trial in snapshot.unended:
            ledger._add(trial)
        return ledger

    def requested(self, node: NodeName) -> float:
        """Return the cores requested of ``node``, moves towards it included."""
        return self._load(node).cpu

    def fits(self, trial: Trial, node: NodeName) -> bool:
        """Return whether all of the trial's workers may go to ``node``: known, ready, and with room for them."""
        place = self.nodes.get(node)
        if place is None or not place.ready:
            return False
        load, cpu = self._load(node), _restart_cpu(trial)
        return (
            max(load.cpu, load.base_cpu) + cpu <= place.cpu + SLACK
            and load.memory + trial.memory * trial.workers <= place.memory
        )

    def allows(self, action: Action) -> bool:
        """Return whether ``action`` keeps every node within its capacity."""
        trial = self.trials.get(action.trial)
        if trial is None:
            return False
        if isinstance(action, Migrate | Place):
            return action.node is None or self.fits(trial, action.node)
        return self._resizes(trial, action)

    def take(self, action: Action) -> None:
        """Count ``action`` as begun."""
        trial = self.trials[action.trial]
        if isinstance(action, Migrate | Place):
            if action.node is not None:
                self._arrive(trial, action.node)
            return
        for node in trial.nodes:
            self._load(node).cpu += action.cpu - trial.cpu

    def _resizes(self, trial: Trial, action: Resize) -> bool:
        change = action.cpu - trial.cpu
        return math.isfinite(action.cpu) and all(
            change <= 0 or self._load(node).cpu + change * trial.nodes.count(node) <= self.nodes[node].cpu + SLACK
            for node in sorted(set(trial.nodes))
            if node in self.nodes
        )

    def _load(self, node: NodeName) -> _Load:
        load = self._loads.get(node)
        if load is None:
            load = self._loads[node] = _Load()
        return load

    def _add(self, trial: Trial) -> None:
        for node in trial.nodes:
            load = self._load(node)
            load.cpu += trial.cpu
            load.base_cpu += trial.base_cpu
            load.memory += trial.memory
        if trial.phase is Phase.MOVING and trial.moving_to and trial.moving_to not in trial.nodes:
            self._arrive(trial, trial.moving_to)

    def _arrive(self, trial: Trial, node: NodeName) -> None:
        load, cpu = self._load(node), _restart_cpu(trial)
        load.cpu += cpu
        load.base_cpu += cpu
        load.memory += trial.memory * trial.workers


def _restart_cpu(trial: Trial) -> float:
    return max(trial.cpu, trial.base_cpu) * trial.workers
