"""All campaigns of a controller share one cluster: an arbiter decides between them, and people are told."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.cluster.logs import fields
from controllers.core.model import Ask
from controllers.core.policy import Policy
from controllers.core.queue_places import MOST_REASON, QueuePlace, annotation_of
from controllers.driving.arbitration import Arbitration, Member
from controllers.driving.shared_world import SharedWorld
from controllers.policies.arbiter import Arbiter, Part
from controllers.worlds.argo.calls.api import WORKFLOWS
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.meaning.view import Campaign, ClusterView

_LOG = logging.getLogger(__name__)
ROUND_S: Final = 1.0
"""Seconds between two rounds at least."""
TELL_EVERY_S: Final = 15.0
"""Seconds between two changes of what a workflow says of its place at least."""
_WHOLE_S: Final = 10.0
"""Times are told to so many seconds: one that only trembles is no news."""
Tell = Callable[[Campaign, QueuePlace], bool]
"""Writes a campaign's place where its owner looks; returns whether that was begun."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A campaign that is steered: as it is now, what its engine acts on, its policy, and what its owner asks."""

    campaign: Callable[[], Campaign]
    world: SharedWorld
    policy: Callable[[], Policy[Any]]
    asked: Callable[[], Mapping[str, Ask]]


class SharedCluster:
    """Keeps who shares the cluster.

    Args:
        arbiter: what decides between them.
        clock: seconds that never go back.
        epoch: Unix seconds by the API server's clock.
        tell: writes places down.
    """

    def __init__(self, arbiter: Arbiter, clock: Callable[[], float], epoch: Callable[[], float], tell: Tell) -> None:
        self._arbitration = Arbitration(arbiter)
        self._clock = clock
        self._epoch = epoch
        self._tell = tell
        self._seats: dict[str, Seat] = {}
        self._told: dict[str, tuple[float, QueuePlace]] = {}
        self._round_at = -ROUND_S

    def join(self, name: str, seat: Seat) -> None:
        """Let a campaign take part from now on."""
        self._seats[name] = seat

    def leave(self, name: str) -> None:
        """Let a campaign take part no more; from any thread."""
        self._seats.pop(name, None)

    def decide(self) -> None:
        """Have the arbiter decide, if it is time; where that fails, every sweep goes on as if it were alone."""
        now = self._clock()
        if now - self._round_at < ROUND_S:
            return
        self._round_at = now
        seats = {name: seat for name, seat in list(self._seats.items()) if _answers(seat)}
        try:
            parts = self._arbitration.decide(now, [self._member(name, seat, now) for name, seat in seats.items()])
        except Exception:  # noqa: BLE001 - no defect here may keep sweeps from going on
            _LOG.exception("cannot decide between sweeps; each goes on as if it were alone")
            for seat in seats.values():
                seat.world.part = None
            return
        self._told = {name: told for name, told in self._told.items() if name in seats}
        for name, part in parts.items():
            self._tell_place(name, seats[name], part, now)

    def _member(self, name: str, seat: Seat, now: float) -> Member:
        campaign = seat.campaign()
        return Member(
            name=name,
            namespace=campaign.namespace,
            world=seat.world,
            needs=lambda: seat.policy().needs,
            asked=seat.asked,
            origin=now - (self._epoch() - campaign.created_epoch_s),
            weight=campaign.weight,
            priority=campaign.priority,
        )

    def _tell_place(self, name: str, seat: Seat, part: Part, now: float) -> None:
        campaign = seat.campaign()
        before_at, before = self._told.get(name, (-TELL_EVERY_S, QueuePlace()))
        if now - before_at < TELL_EVERY_S:
            return
        place = place_of(part, campaign, 0.0 if part.waits_since is None else self._epoch() - now + part.waits_since)
        if place != replace(before, told_at=0.0) and self._tell(campaign, replace(place, told_at=self._epoch())):
            self._told[name] = now, place


def place_of(part: Part, campaign: Campaign, waits_since: float) -> QueuePlace:
    """Return what is told of a campaign's part; ``waits_since`` is in Unix seconds, 0 where it has something."""
    return QueuePlace(
        policy=campaign.policy[:MOST_REASON],
        weight=campaign.weight,
        priority=campaign.priority,
        running=part.running,
        waiting=part.waiting,
        starting=len(part.starts),
        has_cpu=round(part.has.cpu, 2),
        entitled_cpu=round(part.entitled.cpu, 2),
        has_devices=str(part.has.devices)[:MOST_REASON] if part.has.devices else "",
        entitled_devices=str(part.entitled.devices)[:MOST_REASON] if part.entitled.devices else "",
        gives_back=len(part.gives_back),
        waits_since=waits_since // _WHOLE_S * _WHOLE_S,
        reason=part.reason[:MOST_REASON],
    )


def teller(view: ClusterView) -> Tell:
    """Return what writes a campaign's place into an annotation of its workflow."""

    def tell(campaign: Campaign, place: QueuePlace) -> bool:
        path = WORKFLOWS.path(campaign.namespace, campaign.workflow)
        note = {annotation_of(campaign.policy): place.written()}
        body: dict[str, object] = {"metadata": {"uid": campaign.uid, "annotations": note}}

        def done(failure: ApiError | None) -> None:
            if failure is not None:
                about = fields(namespace=campaign.namespace, workflow=campaign.workflow)
                _LOG.debug("cannot tell a sweep its place among others: %s", failure, extra=about)

        return view.writes.submit(
            f"{campaign.uid} {campaign.policy}", lambda: _patch(view, path, body), done, namespace=campaign.namespace
        )

    return tell


def _patch(view: ClusterView, path: str, body: dict[str, object]) -> None:
    view.api.patch(path, body)


def _answers(seat: Seat) -> bool:
    """Return whether a world tells of its trials: one that does not keeps the others from nothing."""
    try:
        seat.world.trials()
    except Exception:  # noqa: BLE001 - whatever is wrong with one sweep must not stop the others
        _LOG.exception("a sweep is left out where sweeps share the cluster: its world does not answer")
        seat.world.part = None
        return False
    return True
