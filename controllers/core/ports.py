"""What the engine asks of the outside: four small Protocols that each world implements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from controllers.core.model import Action, Assessment, Node, NodeName, Sample, Snapshot, Trial, TrialId


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a world took an action on, and why not.

    ``busy`` tells that it was not for now, since the last action on the trial is still under way: nothing is wrong.
    """

    accepted: bool
    detail: str = ""
    busy: bool = False


class Cluster(Protocol):
    """The trials and nodes of one sweep, and the actions this world can carry out on them."""

    @property
    def can(self) -> frozenset[type[Action]]:
        """Kinds of action that ``apply`` carries out."""
        ...

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far, ended ones included, without ``progress``."""
        ...

    def nodes(self) -> Sequence[Node]:
        """Return every node."""
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


class MetricSource(Protocol):
    """Progress of the trials, read in one query for the whole sweep."""

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial that has one; empty when the source is away."""
        ...


class Clock(Protocol):
    """Seconds of the sweep's own time."""

    def now(self) -> float:
        """Return the time since the sweep began, in seconds."""
        ...


class Journal(Protocol):
    """What must outlive a killed controller, and the record of what was done."""

    def load(self) -> str | None:
        """Return the state saved last, or None at the very first start."""
        ...

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep what ``state`` returns (JSON, the same however late it is called), whole or not at all.

        With ``urgent`` it is kept when this returns, because something is about to be done that it accounts
        for; otherwise a journal whose writes are dear may let the newest state wait a few seconds, and need not call
        ``state`` of those before.
        """
        ...

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Record an action that was tried, why, and what the world said."""
        ...


class Observer(Protocol):
    """Whoever watches a sweep: a live display, MLflow's tags, a recording. Must not act on it."""

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """See one tick: ``reasons`` holds the newest reason of an action for each trial that has one."""
        ...
