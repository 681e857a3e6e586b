"""Holding the lease: an election on a thread of its own, against the API server."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from controllers.cluster.election import Election, Lease, LeaseUnavailableError, Request, Round

_LOG = logging.getLogger(__name__)


class LeaseStore(Protocol):
    """Where the lease is kept."""

    def carry_out(self, request: Request) -> Lease | None:
        """Answer one request of an election.

        Raises:
            LeaseUnavailableError: there is no answer; a write may have happened or not.
        """
        ...


class AlwaysLeading:
    """For a controller that has no replica beside it."""

    leading = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def resign(self) -> None:
        """There is nobody to lead instead."""


class Leadership:
    """Competes until it resigns, which is for when nothing is acted upon any more."""

    def __init__(self, election: Election, store: LeaseStore) -> None:
        self._election = election
        self._store = store
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)
        self._failing = False

    @property
    def leading(self) -> bool:
        """Whether this process leads now."""
        return self._election.leading

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.resign()

    def resign(self) -> None:
        """Hand the lease back, once."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(timeout=self._election.timing.deadline)
        self._go_through(self._election.hand_back())

    def _run(self) -> None:
        before = ""
        while not self._stop.is_set():
            self._go_through(self._election.round())
            if self._election.holder != before:
                before = self._election.holder
                _LOG.info("the lease is held by %s", before or "nobody")
            self._stop.wait(self._election.timing.retry)

    def _go_through(self, round_: Round) -> None:
        try:
            _answer(round_, self._store.carry_out)
        except LeaseUnavailableError as error:
            if not self._failing:
                _LOG.warning("the lease can't be read or written: %s", error)
            self._failing = True
        else:
            self._failing = False


def _answer(round_: Round, carry_out: Callable[[Request], Lease | None]) -> None:
    try:
        request = next(round_)
        while True:
            request = round_.send(carry_out(request))
    except StopIteration:
        return
