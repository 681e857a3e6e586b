"""What a controller adds to the world of a campaign: what its trials report, no action without leadership."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from controllers.core.actions import Action, Assessment
from controllers.core.model import Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.ports import Outcome, OutcomeKind, World, refused
from controllers.core.progress import latest_end
from controllers.driving.wrapped_world import WrappedWorld

RECOMMENDED: Final = Outcome(OutcomeKind.RECOMMENDED)
NOT_LEADING: Final = refused("another controller leads by now")
MOVE_S: Final = 60.0
"""Seconds that the next attempt of a trial takes to go on where this one was: its pod, its imports, its checkpoint."""


class LeaderOnly(WrappedWorld):
    """A world that is acted on only while ``leading``, and never by a controller that only recommends."""

    def __init__(self, world: World, leading: Callable[[], bool], *, recommend: bool) -> None:
        super().__init__(world)
        self._leading = leading
        self._recommend = recommend

    def apply(self, action: Action) -> Outcome:
        """Carry out ``action``, if this controller may."""
        if self._recommend:
            return RECOMMENDED
        return self._world.apply(action) if self._leading() else NOT_LEADING


class ForgetfulStore:
    """Saves nothing, for a controller that may write nothing: it starts without a state each time."""

    def load(self) -> str | None:
        """Return no state."""

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Drop ``state``."""

    def flush(self) -> None:
        """Nothing waits."""


class ReportedUsage:
    """An observer that keeps, for each trial, its mean use between the two newest reports of its CPU time.

    And it tells which trials have less left to do than a move takes.
    """

    def __init__(self) -> None:
        self._before: dict[TrialId, tuple[float, float]] = {}
        self._newest: dict[TrialId, float] = {}
        self._news: dict[TrialId, float] = {}
        self._ending: frozenset[TrialId] = frozenset()

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Note the newest reports."""
        del assessments, reasons
        now = snapshot.now
        # One that is over its time by as much may be stuck: it holds no node any longer.
        self._ending = frozenset(trial.id for trial in snapshot.unended if abs(latest_end(trial) - now) <= MOVE_S)
        for trial in snapshot.trials:
            if trial.progress is not None and trial.progress.cpu_seconds is not None:
                self._take(trial.id, trial.progress.at, trial.progress.cpu_seconds)

    def hooked(self, trial: TrialId) -> bool:
        """Return whether a trial has ever reported CPU time, as our hooks do and other libraries do not."""
        return trial in self._before

    def ends_soon(self, trial: TrialId) -> bool:
        """Return whether a trial had less left to do, at the last look, than a move of it would take."""
        return trial in self._ending

    def cores_used(self) -> Mapping[TrialId, float]:
        """Return the cores of each trial that has reported since the last call."""
        news, self._news = self._news, {}
        return news

    def on_nodes(self, trials: Sequence[Trial]) -> dict[NodeName, float]:
        """Return the cores in use on each node by those of ``trials`` that run and have reported."""
        used: dict[NodeName, float] = {}
        for trial in trials:
            cores = self._newest.get(trial.id) if trial.phase is Phase.RUNNING else None
            for node in trial.nodes if cores else ():
                used[node] = used.get(node, 0.0) + (cores or 0.0) / len(trial.nodes)
        return used

    def _take(self, trial: TrialId, at: float, cpu_seconds: float) -> None:
        before = self._before.get(trial)
        if before is not None and at <= before[0]:
            return
        self._before[trial] = (at, cpu_seconds)
        # CPU time that fell is that of another run of the trial, whose start is not known.
        if before is not None and cpu_seconds >= before[1]:
            self._newest[trial] = self._news[trial] = (cpu_seconds - before[1]) / (at - before[0])


class BusyNodes(WrappedWorld):
    """A world whose nodes show the CPU use that its trials report, because Argo does not show it."""

    def __init__(self, world: World, usage: ReportedUsage) -> None:
        super().__init__(world)
        self._usage = usage

    def nodes(self) -> Sequence[Node]:
        """Return the nodes with the cores in use of each, at most all it has."""
        used = self._usage.on_nodes(self._world.trials())
        return [
            replace(node, cpu_used=min(node.cpu, used[node.name])) if node.name in used else node
            for node in self._world.nodes()
        ]
