"""Starts, drives and ends all campaigns of a cluster. One that fails is set aside for a while and delays no other."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from controllers.cluster.instruments import Instruments
from controllers.cluster.logs import fields
from controllers.core.model import Phase
from controllers.worlds.argo.meaning.view import Campaign

_LOG = logging.getLogger(__name__)
_FIRST_WAIT_S = 1.0
_MOST_WAIT_S = 60.0
_MOST_OF_NAMESPACE = 100
"""Campaigns of a namespace that run at a time: each has threads."""
_MOST_ENDED_AT_ONCE = 4
"""Campaigns of a namespace that run at a time though they were over when first seen. A restart may find hundreds."""
_NAMESPACE_S = 0.5
"""Seconds that the campaigns of a namespace get in each round, so that many of them keep nobody else waiting."""


class CampaignDriver(Protocol):
    """What drives one campaign."""

    phases: Counter[Phase]

    @property
    def without_objective(self) -> int:
        """How many trials lack their objective."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        ...

    def step(self, campaign: Campaign) -> None:
        """Go on; raise whatever failed."""
        ...

    def keep_state(self) -> None:
        """Save its state."""
        ...

    def close(self) -> None:
        """End its threads."""
        ...

    def abandon(self) -> None:
        """Note that its workflow was deleted."""
        ...


@dataclass
class _Slot:
    """A campaign and what drives it; ``retry_at`` and ``began_at`` in seconds of the clock."""

    campaign: Campaign
    run: CampaignDriver | None = None
    failures: int = 0
    retry_at: float = 0.0
    began_at: float = 0.0
    done: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others."""
        return self.campaign.uid, self.campaign.policy

    @property
    def about(self) -> dict[str, str]:
        """What every log line says of it."""
        return {
            "namespace": self.campaign.namespace,
            "workflow": self.campaign.workflow,
            "policy": self.campaign.policy,
        }


def _begun(work: Callable[[], None]) -> threading.Thread:
    """Do ``work`` on a thread of its own, which is returned."""
    thread = threading.Thread(target=work, name="close", daemon=True)
    thread.start()
    return thread


class Campaigns:
    """Drives every campaign.

    Args:
        start: begins to drive a campaign.
        clock: seconds that never go back.
        instruments: what is shown to Prometheus.
        leading: whether to go on; asked before each campaign.
        beside: does something on another thread, so that nobody waits for it.
        decide: has what decides between campaigns do so, before each round.
    """

    def __init__(
        self,
        start: Callable[[Campaign], CampaignDriver],
        clock: Callable[[], float],
        instruments: Instruments,
        leading: Callable[[], bool],
        beside: Callable[[Callable[[], None]], threading.Thread] = _begun,
        decide: Callable[[], object] = bool,
    ) -> None:
        self._start = start
        self._clock = clock
        self._instruments = instruments
        self._leading = leading
        self._beside = beside
        self._decide = decide
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._closing: dict[tuple[str, str], threading.Thread] = {}
        self._turn: dict[str, int] = {}

    def reconcile(self, campaigns: Sequence[Campaign]) -> None:
        """Note which campaigns there are."""
        there = {(campaign.uid, campaign.policy): campaign for campaign in campaigns}
        for key in [key for key in self._slots if key not in there]:
            slot = self._slots.pop(key)
            if slot.run is not None:
                _LOG.info("the workflow of a sweep is gone", extra=fields(**slot.about))
                slot.run.abandon()
                self._close(slot)
        for key, campaign in there.items():
            slot = self._slots.setdefault(key, _Slot(campaign))
            slot.campaign = campaign
            # A workflow that was retried goes on, and so does its sweep.
            slot.done = slot.done and campaign.finished

    def step(self) -> None:
        """Drive each campaign one step, those of a namespace for half a second: the others go first next time."""
        by_namespace: dict[str, list[_Slot]] = {}
        for slot in self._slots.values():
            by_namespace.setdefault(slot.campaign.namespace, []).append(slot)
        self._turn = {namespace: self._turn.get(namespace, 0) for namespace in by_namespace}
        self._closing = {key: thread for key, thread in self._closing.items() if thread.is_alive()}
        self._decide()
        for namespace, slots in by_namespace.items():
            self._step_namespace(namespace, slots)
        self._show()

    def keep_states(self) -> None:
        """Save the state of each campaign; only a controller that still leads may do so."""
        for slot in self._slots.values():
            if slot.run is not None:
                slot.run.keep_state()

    def close(self) -> None:
        """Begin to end everything. What the cluster and MLflow hold is enough to start again."""
        for slot in self._slots.values():
            self._close(slot)
        self._slots.clear()
        self._show()

    def wait_closed(self, within_s: float) -> bool:
        """Wait until all that was to be ended has ended, at most ``within_s``; return whether it has."""
        deadline = self._clock() + within_s
        for thread in self._closing.values():
            thread.join(max(0.0, deadline - self._clock()))
        return not any(thread.is_alive() for thread in self._closing.values())

    def _step_namespace(self, namespace: str, slots: Sequence[_Slot]) -> None:
        under_way = Counter(slot.campaign.finished for slot in slots if slot.run is not None)
        first, began = self._turn[namespace] % len(slots), self._clock()
        for number, slot in enumerate((*slots[first:], *slots[:first])):
            if number and self._clock() - began > _NAMESPACE_S:
                self._turn[namespace] = first + number
                return
            if self._leading() and not slot.done and self._clock() >= slot.retry_at:
                self._step(slot, under_way)

    def _step(self, slot: _Slot, under_way: Counter[bool]) -> None:
        try:
            if slot.run is None:
                # What is left of its last run may still write to MLflow.
                if self._must_wait(slot, under_way) or slot.key in self._closing:
                    return
                slot.run, slot.began_at = self._start(slot.campaign), self._clock()
                under_way[slot.campaign.finished] += 1
                _LOG.info("steering a sweep", extra=fields(**slot.about))
            slot.run.step(slot.campaign)
        except Exception:  # noqa: BLE001 - whatever is wrong with one campaign must not stop the others
            self._set_aside(slot)
            return
        if self._clock() - slot.began_at > _MOST_WAIT_S:
            slot.failures = 0  # it has run for long enough: what went wrong before is over
        if slot.run.done:
            _LOG.info("a sweep is over and its record is complete", extra=fields(**slot.about))
            slot.done = True
            slot.failures = 0
            self._close(slot)

    def _must_wait(self, slot: _Slot, under_way: Counter[bool]) -> bool:
        """Return whether as many campaigns of its namespace are ``under_way``, by whether they are over, as may be."""
        if under_way.total() >= _MOST_OF_NAMESPACE:
            return True
        return slot.campaign.finished and under_way[True] >= _MOST_ENDED_AT_ONCE

    def _set_aside(self, slot: _Slot) -> None:
        wait = min(_MOST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(slot.failures, 16))
        slot.failures += 1
        slot.retry_at = self._clock() + wait
        self._instruments.errors.inc()
        about = fields(**slot.about, failures=slot.failures, retry_in_s=wait)
        _LOG.exception("cannot steer a sweep for now", extra=about)
        self._close(slot)

    def _close(self, slot: _Slot) -> None:
        """End what drives a campaign, on another thread: what is left to write to MLflow may take a while."""
        run, slot.run = slot.run, None
        if run is not None:
            self._closing[slot.key] = self._beside(partial(_end, run, slot.about))

    def _show(self) -> None:
        runs = [slot.run for slot in self._slots.values() if slot.run is not None]
        self._instruments.show_trials(sum((run.phases for run in runs), Counter[Phase]()))
        self._instruments.silent.set(sum(run.without_objective for run in runs))
        self._instruments.campaigns.set(len(runs))
        waiting = [slot for slot in self._slots.values() if slot.run is None and slot.failures and not slot.done]
        self._instruments.failing.set(len(waiting))


def _end(run: CampaignDriver, about: dict[str, str]) -> None:
    try:
        run.close()
    except Exception:  # noqa: BLE001 - the thread ends here, and its campaign may begin again
        _LOG.exception("could not end the threads of a sweep", extra=fields(**about))
