"""The loop of a controller process: it leads or stands by, and acts only by a fresh view of the cluster."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from controllers.cluster.health import Health
from controllers.cluster.instruments import Instruments
from controllers.worlds.argo.meaning.view import Campaign

_LOG = logging.getLogger(__name__)
_PAUSE_S = 0.5
_LOOK_FOR_CAMPAIGNS_S = 1.0
_LAST_RECORDS_S = 10.0


class View(Protocol):
    """What the loop sees of a cluster."""

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
        """Return which permissions to look this controller lacks, in the API server's words."""
        ...

    def campaigns(self, default_policy: str) -> Sequence[Campaign]:
        """Return every campaign, ended ones included."""
        ...


class Leading(Protocol):
    """Whether this process leads."""

    @property
    def leading(self) -> bool:
        """Whether to act now; ask again before every act."""
        ...

    def resign(self) -> None:
        """Let another lead at once; from now on this process does not."""
        ...


class AllCampaigns(Protocol):
    """What drives the campaigns."""

    def reconcile(self, campaigns: Sequence[Campaign]) -> None:
        """Note which campaigns there are."""
        ...

    def step(self) -> None:
        """Drive each one step."""
        ...

    def keep_states(self) -> None:
        """Save the state of each."""
        ...

    def close(self) -> None:
        """Begin to end every campaign."""
        ...

    def wait_closed(self, within_s: float) -> bool:
        """Wait until every campaign has ended, at most ``within_s``; return whether that is so."""
        ...


class ControllerLoop:
    """Drives the campaigns while this process leads and its view is fresh.

    Args:
        view: what is seen of the cluster.
        campaigns: what is driven.
        leadership: whether this process leads.
        health: is told that the loop comes round.
        instruments: what is shown to Prometheus.
        clock: seconds that never go back.
        policy: spec for sweeps that name none.
        stale_after: age in seconds at which the view is too old to act on.
        wait_for_writes: waits until no change of the cluster is under way.
        look_at_cluster: finds out again, if it is time, what the cluster can do.
    """

    def __init__(  # noqa: PLR0913 - the parts that the composition root put together, each named
        self,
        *,
        view: View,
        campaigns: AllCampaigns,
        leadership: Leading,
        health: Health,
        instruments: Instruments,
        clock: Callable[[], float],
        policy: str,
        stale_after: float,
        wait_for_writes: Callable[[], object],
        look_at_cluster: Callable[[], object],
    ) -> None:
        self._view = view
        self._campaigns = campaigns
        self._leadership = leadership
        self._health = health
        self._instruments = instruments
        self._clock = clock
        self._policy = policy
        self._stale_after = stale_after
        self._wait_for_writes = wait_for_writes
        self._look_at_cluster = look_at_cluster
        self._led = False
        self._blind = False
        self._looked_at: float | None = None
        self._refused: set[str] = set()

    def run(self, stop: threading.Event) -> None:
        """Go round until ``stop`` is set, then hand over."""
        while not stop.is_set():
            self.once()
            self._view.wait_for_news(_PAUSE_S)
        # The next leader reads the state that is kept now, and acts at once: nothing may still be under way then.
        self._wait_for_writes()
        if self._leadership.leading:
            self._campaigns.keep_states()
        self._leadership.resign()
        # What is left to write to MLflow may take a while, and keeps nobody from leading.
        self._campaigns.close()
        self._campaigns.wait_closed(_LAST_RECORDS_S)

    def once(self) -> None:
        """Go round once."""
        self._health.looped()
        self._instruments.watch_age.set(self._view.age_s())
        self._tell_refusals()
        leading = self._leadership.leading
        self._instruments.leader.set(leading)
        if leading != self._led:
            self._change_role(leading=leading)
        if not leading or not self._view_is_fresh():
            return
        # Before any sweep: what the cluster cannot do decides which policies it can have.
        self._look_at_cluster()
        now = self._clock()
        if self._looked_at is None or now - self._looked_at >= _LOOK_FOR_CAMPAIGNS_S:
            self._looked_at = now
            self._campaigns.reconcile(self._view.campaigns(self._policy))
        self._campaigns.step()

    def _change_role(self, *, leading: bool) -> None:
        self._led, self._looked_at = leading, None
        if leading:
            _LOG.info("leading: this replica steers the sweeps")
        else:
            _LOG.warning("no longer leading: standing by")
            # Their state is not kept: another leads by now, and has a newer one.
            self._campaigns.close()

    def _view_is_fresh(self) -> bool:
        """Return whether the view is complete and fresh. The controller acts by no other."""
        age = self._view.age_s()
        blind = not self._view.synced() or age > self._stale_after
        if blind:
            self._instruments.stale.inc()
        if blind != self._blind:
            self._blind = blind
            level, does = (logging.WARNING, "waits for") if blind else (logging.INFO, "has")
            text = "the controller %s a fresh view of the cluster (%.0f s old, at most %g s are allowed)"
            _LOG.log(level, text, does, age, self._stale_after)
        return not blind

    def _tell_refusals(self) -> None:
        """Log each refusal once, and what to do about it."""
        for refusal in set(self._view.refusals()) - self._refused:
            self._refused.add(refusal)
            message = (
                "this account lacks a permission; apply manifests/ again, docs/reference/permissions.md lists all: %s"
            )
            _LOG.error(message, refusal)
