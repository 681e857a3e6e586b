"""What the engine asks of the outside: small Protocols that each world, tracker and record implements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from controllers.core.actions import Action, Assessment
from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Ask, Node, NodeKind, NodeName, Point, Sample, Snapshot, Trial, TrialId
from controllers.core.results import TrialResult


class OutcomeKind(StrEnum):
    """What became of an action that a policy wanted."""

    DONE = "done"
    """The world took it on; how it fares shows in later snapshots."""
    BUSY = "busy"
    """Not for now: the world still carries out the last action on the trial, or its search still looks for its
    hyperparameters. Nothing is wrong."""
    REFUSED = "refused"
    """The world cannot do it as things are."""
    VETOED = "vetoed"
    """A guard, or another policy's action, stood against it; the world was never asked."""
    CHANGED = "changed"
    """The trial or node changed after the policy looked at it; the world was never asked."""
    RECOMMENDED = "recommended"
    """The controller only recommends; the world was never asked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action, and why it was not done, in words for a person."""

    kind: OutcomeKind
    detail: str = ""

    @property
    def done(self) -> bool:
        """Whether the world took the action on."""
        return self.kind is OutcomeKind.DONE


DONE: Final = Outcome(OutcomeKind.DONE)
BUSY: Final = Outcome(OutcomeKind.BUSY, "the last action on the trial is still under way")


def refused(why: str) -> Outcome:
    """Return the outcome of an action that the world cannot do, because of ``why``."""
    return Outcome(OutcomeKind.REFUSED, why)


@dataclass(frozen=True, slots=True)
class ComingTrial:
    """A trial that has not been submitted yet, as far as its world knows it.

    ``at`` is when it is due at the earliest, in seconds of the sweep's clock. ``cpu`` (cores), ``memory`` (bytes) and
    ``devices`` are what it will request over all its workers.
    """

    id: TrialId
    at: float
    cpu: float
    memory: float = 0.0
    devices: Devices = NO_DEVICES


class World(Protocol):
    """Where the trials of one sweep run: what it shows of them, and what it can do to them.

    Time comes from outside: the driver of the world calls ``advance`` with the sweep's clock. Nothing here waits.
    """

    @property
    def can(self) -> frozenset[type[Action]]:
        """Kinds of action that ``apply`` carries out."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the sweep is over: nothing more will happen to any trial."""
        ...

    @property
    def failed(self) -> bool:
        """Whether it came to a bad end."""
        ...

    def advance(self, now: float) -> bool:
        """Take in what has happened until ``now`` (seconds of the sweep's clock) and go on with what is under way.

        Returns:
            Whether any trial or node has changed since the last call.
        """
        ...

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far, ended ones included, without ``progress``."""
        ...

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial that is known to be submitted later; a few may be missing, or not come."""
        ...

    def nodes(self) -> Sequence[Node]:
        """Return every node."""
        ...

    def kinds(self) -> Sequence[NodeKind]:
        """Return the kinds of nodes that can come; none where no node ever does, or nobody knows."""
        ...

    def trial(self, name: TrialId) -> Trial | None:
        """Return the trial as it is now, None where there is none; cheap, whatever the number of trials."""
        ...

    def node(self, name: NodeName) -> Node | None:
        """Return the node as it is now, None where there is none; cheap, whatever the number of nodes."""
        ...

    def apply(self, action: Action) -> Outcome:
        """Start carrying out ``action``; never waits for it to finish, never raises for a refusal."""
        ...

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each submitted trial's objective."""
        ...

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        """Return the metrics of each submitted trial that count beside its objective; none of trials without any."""
        ...

    def short(self, trial: str) -> str:
        """Return the id of a trial that is the same in every run of its sweep."""
        ...

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        """Return how each trial submitted so far went, in the order of submission, with its value in ``samples``."""
        ...


class MetricSource(Protocol):
    """Progress of the trials, read in one query for the whole sweep."""

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial that has one; empty when the source is away."""
        ...


class Search(Protocol):
    """Finds the hyperparameters of trials whose author left them to a search."""

    def ask(self, trial: Trial, snapshot: Snapshot, points: Mapping[TrialId, Point]) -> Point:
        """Return the hyperparameters of ``trial``, which is about to start for the first time.

        Args:
            trial: it, with the text of its search.
            snapshot: how far the other trials have come.
            points: what was found for those before, where it is remembered.

        Raises:
            SearchPending: its search is still looking, from what it was told at the first question. Ask again later.
            SearchError: its search makes no sense, or finds nothing.
        """
        ...


class Requests(Protocol):
    """What owners ask of their trials while the sweep runs."""

    def asked(self) -> Mapping[str, Ask]:
        """Return it by the short id of each trial (``World.short``); trials of that name may not be there."""
        ...


class StateStore(Protocol):
    """Keeps what must outlive a killed controller."""

    def load(self) -> str | None:
        """Return the state saved last, or None at the very first start."""
        ...

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep what ``state`` returns (JSON, the same however late it is called), whole or not at all.

        With ``urgent`` it is kept when this returns, because something is about to be done that it accounts
        for; otherwise a store whose writes are dear may let the newest state wait a few seconds, and need not call
        ``state`` of those before.
        """
        ...


class ActionLog(Protocol):
    """The record of what was wanted, why, and what became of it."""

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Record an action that a policy wanted at ``now`` seconds of the sweep's clock."""
        ...


class Observer(Protocol):
    """What watches a sweep: a live display, MLflow's tags, a recording. It must not act on the sweep."""

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """See one tick: ``reasons`` holds the newest reason of an action for each trial that has one."""
        ...
