"""What the controller asks of a cluster: which campaigns there are, and a world and a state store for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from controllers.core.ports import StateStore, World


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


class WaitingStore(StateStore, Protocol):
    """A state store that may let a state wait."""

    def flush(self) -> None:
        """Keep now what is waiting."""
        ...


class Worlds(Protocol):
    """Makes the world and the state store of a campaign."""

    def open(self, campaign: Campaign, now: Callable[[], float]) -> tuple[World, WaitingStore]:
        """Return both, as of what the cluster holds; ``now`` is the sweep's clock."""
        ...
