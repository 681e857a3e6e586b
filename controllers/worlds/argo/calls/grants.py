"""What an account may do to pods beside changing them, as the API server answers when it is asked (access reviews)."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from controllers.worlds.argo.calls.api import KubeApi, Resource
from controllers.worlds.argo.calls.errors import ApiError, UnavailableError
from controllers.worlds.argo.calls.untrusted import at

_LOG = logging.getLogger(__name__)
REVIEWS: Final = Resource("apis/authorization.k8s.io/v1", "selfsubjectaccessreviews")
LEAVE_BY: Final = ("auto", "exec", "annotation")
LeaveBy = Literal["auto", "exec", "annotation"]
"""How trials are asked to leave: by SIGTERM through an exec, by an annotation, or by exec where that is granted."""
AGAIN_S: Final = 300.0
"""Roles are changed seldom, and a controller that is restarted asks at once."""
_AFTER_FAILURE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Grants:
    """What may be done to the pods of a namespace.

    ``signals`` tells that trials are asked to leave, and killed where they do not, by signals: it takes an exec.
    ``evicts`` tells that pods may be evicted.
    """

    signals: bool = True
    evicts: bool = True

    def __str__(self) -> str:
        asked = "signals" if self.signals else "an annotation"
        return f"trials are asked to leave by {asked}, and pods are {'' if self.evicts else 'never '}evicted"


class GrantReviews:
    """Asks at once, and again every five minutes, on a thread of its own.

    Args:
        api: of the cluster, and the account.
        namespaces: what is asked about; None stands for all of them at once.
        leave_by: what the controller's settings say.
        news: called when something was learnt.
    """

    def __init__(
        self, api: KubeApi, namespaces: Sequence[str | None], leave_by: LeaveBy, news: Callable[[], None]
    ) -> None:
        self._api = api
        self._namespaces = namespaces
        self._leave_by = leave_by
        self._news = news
        self._known: Mapping[str | None, Grants] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="grants", daemon=True)

    @property
    def synced(self) -> bool:
        """Whether there is an answer for each namespace."""
        return len(self._known) == len(self._namespaces)

    def of(self, namespace: str) -> Grants:
        """Return what is granted in a namespace; all, as long as nobody has answered."""
        known = self._known
        return known.get(namespace) or known.get(None) or Grants()

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            for namespace in self._namespaces:
                self._take(namespace)
            self._over.wait(AGAIN_S if self.synced else _AFTER_FAILURE_S)

    def _take(self, namespace: str | None) -> None:
        try:
            grants = self._asked(namespace)
        except UnavailableError:
            return
        except ApiError as error:
            # Where Kubernetes' own role for this was taken away, the manifests' roles are what is most likely there.
            _LOG.debug("this account may not ask what it may do: %s", error)
            grants = Grants(signals=self._leave_by != "annotation")
        if grants != self._known.get(namespace):
            where = "everywhere" if namespace is None else f"in namespace {namespace}"
            _LOG.info("%s, %s", where, grants)
            self._known = {**self._known, namespace: grants}
            self._news()

    def _asked(self, namespace: str | None) -> Grants:
        if self._leave_by == "auto":
            # Over WebSocket, an exec is a GET too.
            signals = all(self._may(namespace, "exec", verb) for verb in ("create", "get"))
        else:
            signals = self._leave_by == "exec"
        return Grants(signals, self._may(namespace, "eviction", "create"))

    def _may(self, namespace: str | None, subresource: str, verb: str) -> bool:
        asked = {"verb": verb, "resource": "pods", "subresource": subresource}
        asked |= {} if namespace is None else {"namespace": namespace}
        answer = self._api.ask(REVIEWS.path(), {"spec": {"resourceAttributes": asked}})
        return at(answer, "status", "allowed") is True
