"""Holding the lease: an election on a thread of its own, over a Lease object (coordination.k8s.io/v1)."""

import logging
import threading
from datetime import UTC, datetime
from typing import Any, Final, Protocol, Self, assert_never

from controllers.cluster.election import Create, Election, Lease, LeaseUnavailableError, Read, Replace, Request, Round
from controllers.worlds.argo.calls.api import Json, Resource
from controllers.worlds.argo.calls.errors import ApiError, ConflictError, NotFoundError
from controllers.worlds.argo.calls.untrusted import at, text, whole

_LOG = logging.getLogger(__name__)
LEASES: Final = Resource("apis/coordination.k8s.io/v1", "leases")
_MOST_DURATION_S: Final = 3600


class LeaseStore(Protocol):
    """Where the lease is kept."""

    def carry_out(self, request: Request) -> Lease | None:
        """Answer one request of an election.

        Raises:
            LeaseUnavailableError: there is no answer; a write may have happened or not.
        """
        ...


class AlwaysLeading:
    """The leadership of a controller that has no replica beside it."""

    leading = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to hand back."""

    def resign(self) -> None:
        """There is nobody to lead instead."""


class Leadership:
    """Competes for the lease until it resigns. Resign only once nothing is being done any more."""

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

    def __exit__(self, *_: object) -> None:
        self.resign()

    def resign(self) -> None:
        """Hand the lease back, once."""
        if self._stop.is_set():
            return
        self._stop.set()
        # The thread first: a round under way would take again what is handed back.
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
            request = next(round_)
            while True:
                request = round_.send(self._store.carry_out(request))
        except StopIteration:
            self._failing = False
        except LeaseUnavailableError as error:
            if not self._failing:
                _LOG.warning("cannot read or write the lease: %s", error)
            self._failing = True


class LeaseApi(Protocol):
    """The part of an API server that a lease needs."""

    def get(self, path: str) -> Json:
        """Return the object at ``path``."""
        ...

    def create(self, path: str, body: Json) -> Json:
        """Create ``body`` in the collection at ``path``."""
        ...

    def replace(self, path: str, body: Json) -> Json:
        """Put ``body`` in place of the object at ``path``."""
        ...


class KubernetesLease:
    """Answers an election's requests. The times in the object are for people; no candidate reads them."""

    def __init__(self, api: LeaseApi, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._path = LEASES.path(namespace, name)
        self._held: tuple[str, Any] = ("", None)

    def carry_out(self, request: Request) -> Lease | None:
        """Answer one request.

        Raises:
            LeaseUnavailableError: the API server did not answer, or refused.
        """
        try:
            return self._carry_out(request)
        except ApiError as error:
            raise LeaseUnavailableError(str(error)) from error

    def _carry_out(self, request: Request) -> Lease | None:
        try:
            match request:
                case Read():
                    return self._read(self._api.get(self._path))
                case Create(lease):
                    return self._read(self._api.create(LEASES.path(self._namespace), self._body(lease)))
                case Replace(lease):
                    return self._read(self._api.replace(self._path, self._body(lease)))
                case _:
                    assert_never(request)
        except (NotFoundError, ConflictError):
            return None

    def _read(self, lease: Json) -> Lease:
        holder = text(lease, "spec", "holderIdentity")
        self._held = (holder, at(lease, "spec", "acquireTime"))
        return Lease(
            holder=holder,
            duration=min(_MOST_DURATION_S, max(1, whole(lease, "spec", "leaseDurationSeconds") or 1)),
            transitions=whole(lease, "spec", "leaseTransitions") or 0,
            version=text(lease, "metadata", "resourceVersion"),
        )

    def _body(self, lease: Lease) -> Json:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        holder, since = self._held
        metadata = {"name": self._name, "namespace": self._namespace}
        spec = {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": max(1, round(lease.duration)),
            "acquireTime": since if holder == lease.holder and since else now,
            "renewTime": now,
            "leaseTransitions": lease.transitions,
        }
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, **({"resourceVersion": lease.version} if lease.version else {})},
            "spec": spec,
        }
