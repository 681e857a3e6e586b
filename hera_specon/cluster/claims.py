"""The claims that trials keep their state on, as the cluster has them."""

from collections.abc import Iterator

from controllers.core.errors import SpeconError
from controllers.worlds.argo.api import ForbiddenError, NotFoundError, Resource
from controllers.worlds.argo.untrusted import at
from hera_specon.cluster.access import Access

CLAIMS = Resource("api/v1", "persistentvolumeclaims")
_SHARED = ("ReadWriteMany",)


def claim_warnings(access: Access, claims: set[str]) -> Iterator[str]:
    """Yield what to know of the claims before trusting checkpoints to them; nothing where they may not be read.

    Raises:
        SpeconError: A claim is not there.
    """
    for name in sorted(claims):
        try:
            claim = access.api.get(CLAIMS.path(access.namespace, name))
        except ForbiddenError:
            continue
        except NotFoundError as error:
            message = (
                f"there is no PersistentVolumeClaim {name!r} in namespace {access.namespace!r}, on which the trials "
                "keep their checkpoints; create it (ReadWriteMany), or name another with Sweep(state_claim=...)"
            )
            raise SpeconError(message) from error
        modes = at(claim, "spec", "accessModes")
        if isinstance(modes, list) and not set(_SHARED) & {str(mode) for mode in modes}:
            yield (
                f"PersistentVolumeClaim {name!r} is {', '.join(map(str, modes))}: one node at a time can mount it, "
                "so a trial that moves to another node waits until no other uses it"
            )
