"""A world in which nothing happens by itself, for tests that only care for what the engine sees and does."""

from collections.abc import Mapping, Sequence

from controllers.core.actions import ACTION_KINDS, Action
from controllers.core.model import Node, NodeKind, NodeName, Sample, Trial, TrialId
from controllers.core.ports import DONE, ComingTrial, Outcome
from controllers.core.results import TrialResult


class QuietWorld:
    """Has no trials and no nodes, and takes on every action; subclasses say what differs."""

    can: frozenset[type[Action]] = frozenset(ACTION_KINDS)
    finished = False
    failed = False

    def advance(self, now: float) -> bool:
        assert now >= 0
        return False

    def trials(self) -> Sequence[Trial]:
        return []

    def to_come(self) -> Sequence[ComingTrial]:
        return []

    def nodes(self) -> Sequence[Node]:
        return []

    def trial(self, name: TrialId) -> Trial | None:
        return next((trial for trial in self.trials() if trial.id == name), None)

    def kinds(self) -> Sequence[NodeKind]:
        return []

    def node(self, name: NodeName) -> Node | None:
        return next((node for node in self.nodes() if node.name == name), None)

    def apply(self, action: Action) -> Outcome:
        del action
        return DONE

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        return {}

    def objectives(self) -> Mapping[TrialId, str]:
        return {}

    def short(self, trial: str) -> str:
        return trial

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        del samples
        return []
