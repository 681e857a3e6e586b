"""A world around a world, which differs from it in what its subclasses say."""

from collections.abc import Mapping, Sequence

from controllers.core.actions import Action
from controllers.core.model import Node, NodeKind, NodeName, Sample, Trial, TrialId
from controllers.core.ports import ComingTrial, Outcome, World
from controllers.core.results import TrialResult


class WrappedWorld:
    """Passes everything on to the world within."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def can(self) -> frozenset[type[Action]]:
        """What the world within can do."""
        return self._world.can

    @property
    def finished(self) -> bool:
        """Whether the sweep is over."""
        return self._world.finished

    @property
    def failed(self) -> bool:
        """Whether it came to a bad end."""
        return self._world.failed

    def advance(self, now: float) -> bool:
        """Let the world within go on until ``now``."""
        return self._world.advance(now)

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        return self._world.trials()

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial that is known to be submitted later."""
        return self._world.to_come()

    def nodes(self) -> Sequence[Node]:
        """Return every node."""
        return self._world.nodes()

    def kinds(self) -> Sequence[NodeKind]:
        """Return the kinds of nodes that can come."""
        return self._world.kinds()

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial."""
        return self._world.trial(name)

    def node(self, name: NodeName) -> Node | None:
        """Return one node."""
        return self._world.node(name)

    def apply(self, action: Action) -> Outcome:
        """Have the world within carry out ``action``."""
        return self._world.apply(action)

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each trial's objective."""
        return self._world.objectives()

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        """Return the metrics of each trial that count beside its objective."""
        return self._world.further_metrics()

    def short(self, trial: str) -> str:
        """Return the id of a trial that is the same in every run of its sweep."""
        return self._world.short(trial)

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        """Return how each trial went."""
        return self._world.results(samples)
