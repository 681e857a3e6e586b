"""Sweeps simulated under kais while it tries things out: what it saw, what it chose, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
from pydantic import ConfigDict, Field

from benchmarks.train_kais.workloads import KINDS
from controllers.core.actions import Migrate, Place
from controllers.core.model import NodeName, Snapshot, TrialId
from controllers.lab.simulation.run import simulate
from controllers.policies.ahead import Ahead
from controllers.policies.ahead.policy import AheadState
from controllers.policies.kais import Kais
from controllers.policies.kais.choosing import Best, Chooser
from controllers.policies.kais.grid import Floats, Ints
from controllers.policies.kais.network import Embedding
from controllers.policies.kais.state import KaisState
from controllers.policies.kais.weights import RANGES, Trained
from controllers.worlds.simulated.scenario import Costs, Scenario

Kind = Literal["place", "move", "share"]
COSTS: Final = replace(Costs.argo(), heartbeat_s=2.0)
WHOLE: Final[Mapping[str, Floats]] = {
    kind: np.array([[0.0] * len(names), [1.0] * len(names)]) for kind, names in RANGES.items()
}
"""Ranges in which everything lies: while it is trained, nothing is left to the default scheduler."""
MAKESPAN_WEIGHT: Final = 0.5
"""Of the makespan beside the mean completion time, each as a part of what it is under ``ahead``."""


@dataclass(frozen=True, slots=True)
class Step:
    """One choice: the graph that was seen at ``now`` seconds, the features of what could be chosen, and the choice.

    ``candidates`` are a row for each node (place), for each move (move), or none (share); ``allowed`` which of the
    nodes had room. ``first`` and ``second`` are the trial of a place, trials and targets of moves, or the nodes to
    share. ``taught`` is what ``ahead`` would have chosen, where it was asked.
    """

    kind: Kind
    now: float
    trials: Floats
    at: Ints
    nodes: Floats
    cluster: Floats
    candidates: Floats
    allowed: Ints
    first: Ints
    second: Ints
    chosen: Ints
    taught: int = -1


@dataclass
class Notes:
    """What was chosen so far, and what ``ahead`` would do now."""

    steps: list[Step] = field(default_factory=list)
    now: float = 0.0
    places: dict[TrialId, NodeName] = field(default_factory=dict)
    moves: list[tuple[TrialId, NodeName]] = field(default_factory=list)


@dataclass(frozen=True)
class Exploring:
    """Draws each choice by its score, or takes that of ``ahead`` with the probability ``follow``."""

    notes: Notes
    chance: np.random.Generator
    follow: float

    def place(self, embedding: Embedding, trial: int, pairs: Floats, scores: Floats) -> int:
        """Draw a node."""
        told = self.notes.places.get(embedding.scene.trials[trial])
        taught = embedding.scene.nodes.index(told) if told is not None else -1
        if not np.isfinite(scores[taught]):
            taught = -1  # Its trials start in another order, so that here another had the room.
        drawn = taught if self._follows(taught) else self._drawn(scores)
        roomy = np.isfinite(scores).astype(np.int64)
        self._keep("place", embedding, pairs, roomy, (np.array([trial]), np.array([0])), np.array([drawn]), taught)
        return drawn

    def move(self, embedding: Embedding, trials: Ints, targets: Ints, rows: Floats, scores: Floats) -> int:
        """Draw a move or none."""
        scene, notes = embedding.scene, self.notes
        taught = len(scores)
        for number, (trial, target) in enumerate(zip(trials, targets, strict=True)):
            if (scene.trials[trial], scene.nodes[target]) in notes.moves:
                taught = number
                break
        drawn = taught if self._follows(taught) else self._drawn(np.append(scores, 0.0))
        self._keep("move", embedding, rows, np.ones(len(rows)), (trials, targets), np.array([drawn]), taught)
        return drawn

    def ways(self, embedding: Embedding, nodes: Ints, scores: Floats) -> Ints:
        """Draw a way for each node; ``ahead`` has none to tell."""
        drawn = np.argmax(scores, axis=1) if self.follow else np.array([self._drawn(row) for row in scores])
        if not self.follow:
            none = np.zeros((0, 1))
            self._keep("share", embedding, none, np.zeros(0), (nodes, nodes), drawn, -1)
        return drawn

    def _follows(self, taught: int) -> bool:
        return taught >= 0 and self.follow > 0 and self.chance.random() < self.follow

    def _drawn(self, scores: Floats) -> int:
        # The greatest of scores with Gumbel noise: a draw by their softmax.
        return int(np.argmax(scores + self.chance.gumbel(size=len(scores))))

    def _keep(  # noqa: PLR0913, PLR0917 - the columns of a step
        self,
        kind: Kind,
        embedding: Embedding,
        candidates: Floats,
        allowed: Any,  # noqa: ANN401 - any array of numbers
        pair: tuple[Ints, Ints],
        chosen: Ints,
        taught: int,
    ) -> None:
        scene = embedding.scene
        self.notes.steps.append(
            Step(
                kind,
                self.notes.now,
                embedding.trial_rows,
                scene.at.copy(),
                embedding.node_rows,
                scene.cluster,
                candidates,
                np.asarray(allowed),
                *pair,
                chosen,
                taught,
            )
        )


class TrainedKais(Kais):
    """Kais with the weights and the chooser that it is given, and notes of what it sees."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    name: ClassVar[str] = "kais-in-training"

    trained: Any = Field(exclude=True, default=None)
    chooser: Any = Field(exclude=True, default=None)
    taught: bool = Field(exclude=True, default=False)

    def _trained(self) -> Trained:
        given: Trained = self.trained
        return given

    def _chooser(self) -> Chooser:
        given: Chooser = self.chooser
        return given

    def _wishes(self, snapshot: Snapshot, state: KaisState, changed: set[NodeName], *, due: bool) -> Any:  # noqa: ANN401 - as Kais
        if isinstance(self.chooser, Exploring):
            notes = self.chooser.notes
            notes.now = snapshot.now
            if self.taught:
                before = AheadState(
                    state.measured, state.starting, state.moves, state.submitted, 0.0 if due else float("inf")
                )
                actions = [proposal.action for proposal in Ahead().decide(snapshot, before).proposals]
                notes.places = {one.trial: one.node for one in actions if isinstance(one, Place) and one.node}
                notes.moves = [(one.trial, one.node) for one in actions if isinstance(one, Migrate)]
        return super()._wishes(snapshot, state, changed, due=due)


@dataclass(frozen=True)
class Episode:
    """The choices of one sweep, and when its trials were submitted and had ended."""

    steps: Sequence[Step]
    submitted: Floats
    ended: Floats

    def to_come(self, now: float, unit: float) -> float:
        """Return what is to be paid from ``now`` on, in ``unit`` seconds: waiting of all trials, and the end."""
        waits = np.maximum(0.0, self.ended - np.maximum(now, self.submitted)).mean()
        return float((waits + MAKESPAN_WEIGHT * max(0.0, self.ended.max() - now)) / unit)

    @property
    def mean_completion(self) -> float:
        """Mean completion time in seconds."""
        return float((self.ended - self.submitted).mean())

    @property
    def makespan(self) -> float:
        """Seconds from the first submission to the last end."""
        return float(self.ended.max() - self.submitted.min())


def explored(trained: Trained, kind: str, seed: int, draw: int, follow: float) -> Episode:
    """Return a sweep of ``kind`` under exploration; ``draw`` tells those of the same seed apart."""
    notes = Notes()
    chooser = Exploring(notes, np.random.default_rng([seed, draw]), follow)
    policy = TrainedKais(trained=Trained(trained.network, WHOLE), chooser=chooser, taught=follow > 0)
    return _episode(policy, kind, seed, notes.steps)


def judged(trained: Trained, kind: str, seed: int) -> Episode:
    """Return a sweep of ``kind`` under the best choices."""
    return _episode(TrainedKais(trained=trained, chooser=Best()), kind, seed, [])


def under(policy: Any, kind: str, seed: int) -> Episode:  # noqa: ANN401 - a policy of any state
    """Return a sweep of ``kind`` under ``policy``."""
    return _episode(policy, kind, seed, [])


def _episode(policy: Any, kind: str, seed: int, steps: list[Step]) -> Episode:  # noqa: ANN401 - a policy of any state
    workload = KINDS[kind](seed)
    result = simulate(Scenario(workload, COSTS, seed), policy).result
    ended = {trial.id: trial.completed_s for trial in result.trials}
    submitted = np.array([trial.submitted_at for trial in workload.trials])
    return Episode(steps, submitted, np.array([ended[str(trial.id)] for trial in workload.trials]))
