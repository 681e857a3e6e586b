"""What the controller asks of a cluster: which campaigns there are, and a world and a journal for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from controllers.core.model import Sample, TrialId
from controllers.core.ports import Cluster, Journal
from controllers.core.results import TrialResult


class Campaign(Protocol):
    """The sweeps of one workflow under one policy. Whatever it says was written by others.

    ``policy`` is a spec as people type it; ``sweeps`` gives the MLflow experiment of each sweep id, as far as the
    workflow has got; ``created_epoch_s`` is in Unix seconds.
    """

    @property
    def namespace(self) -> str:
        """Namespace of the workflow."""
        ...

    @property
    def workflow(self) -> str:
        """Name of the workflow."""
        ...

    @property
    def uid(self) -> str:
        """Uid of the workflow."""
        ...

    @property
    def policy(self) -> str:
        """The policy that steers it, as a spec."""
        ...

    @property
    def created_epoch_s(self) -> float:
        """When the workflow was created: zero on the sweep's clock."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the workflow is over; a retry makes it unfinished again."""
        ...

    @property
    def sweeps(self) -> Mapping[str, str]:
        """MLflow experiment of each sweep id."""
        ...

    @property
    def tracking_uri(self) -> str | None:
        """Where its trials log to, where they say."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the workflow."""
        ...


class View(Protocol):
    """What is seen of a cluster."""

    def synced(self) -> bool:
        """Return whether everything has been seen once."""
        ...

    def age_s(self) -> float:
        """Return the seconds since the API server was last heard."""
        ...

    def wait_for_news(self, within_s: float) -> bool:
        """Wait until something has changed, at most ``within_s`` seconds; return whether it has."""
        ...

    def refusals(self) -> Sequence[str]:
        """Return what this controller's account may not see though it must, in the API server's words."""
        ...

    def campaigns(self, default_policy: str) -> Sequence[Campaign]:
        """Return every campaign there is, over or not."""
        ...


class World(Cluster, Protocol):
    """The trials of one campaign."""

    @property
    def finished(self) -> bool:
        """Whether the workflow is over."""
        ...

    @property
    def failed(self) -> bool:
        """Whether it came to a bad end."""
        ...

    def advance(self, now: float) -> bool:
        """Take in what has happened and go on with what is under way; return whether anything changed."""
        ...

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each trial's objective."""
        ...

    def short(self, trial: str) -> str:
        """Return the id of a trial that is the same in every run of its sweep."""
        ...

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        """Return how each trial went."""
        ...


class KeptJournal(Journal, Protocol):
    """A journal that may let a state wait."""

    def flush(self) -> None:
        """Keep now what is waiting."""
        ...


class Worlds(Protocol):
    """Makes the world and the journal of a campaign."""

    def open(self, campaign: Campaign, now: Callable[[], float]) -> tuple[World, KeptJournal]:
        """Return both, as of what the cluster holds; ``now`` is the sweep's clock."""
        ...
