"""The lease as an object of the API server (coordination.k8s.io/v1)."""

from datetime import UTC, datetime
from typing import Any, Final, Protocol

from controllers.cluster.election import Create, Lease, LeaseUnavailableError, Read, Replace, Request
from controllers.worlds.argo.api import ApiError, ConflictError, Json, NotFoundError, Resource
from controllers.worlds.argo.untrusted import at, text, whole

LEASES: Final = Resource("apis/coordination.k8s.io/v1", "leases")
_MOST_DURATION_S: Final = 3600


class Objects(Protocol):
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

    def __init__(self, api: Objects, namespace: str, name: str) -> None:
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
        except (NotFoundError, ConflictError):
            return None

    def _read(self, found: Json) -> Lease:
        holder = text(found, "spec", "holderIdentity")
        self._held = (holder, at(found, "spec", "acquireTime"))
        return Lease(
            holder=holder,
            duration=min(_MOST_DURATION_S, max(1, whole(found, "spec", "leaseDurationSeconds") or 1)),
            transitions=whole(found, "spec", "leaseTransitions") or 0,
            version=text(found, "metadata", "resourceVersion"),
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
