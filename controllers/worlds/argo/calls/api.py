"""Access to a Kubernetes API server: raw JSON, a time limit on every call, errors by kind.

The ``kubernetes`` package loads the configuration and keeps the connections; its generated models are not used,
since they cost several times the memory of the JSON.
"""

import email.utils
import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError, InvalidHeader

from controllers.worlds.argo.calls.errors import (
    ApiError,
    BudgetError,
    ConflictError,
    ForbiddenError,
    GoneError,
    NoConfigurationError,
    NotAllowedNowError,
    NotFoundError,
    RejectedError,
    TooLargeError,
    TooManyRequestsError,
    UnavailableError,
)
from controllers.worlds.argo.calls.untrusted import TooManyPartsError, mappings, parsed, text
from mlflow_hooks.foreign_json import TooDeepError
from mlflow_hooks.foreign_json import parsed as plain_json

_LOG = logging.getLogger(__name__)
Json = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_CONNECTIONS = 32
_CONNECT_S = 5.0
_READ_S = 30.0
_MOST_ANSWER = 16 * 2**20
_MOST_PARTS = 1_000_000
"""Bytes of an answer, and values in it. One wide character makes each byte four in memory; so many values take a
hundred megabytes."""
_MOST_ERROR = 2**16
_MOST_METADATA = 2**13
_METADATA_FIRST = re.compile(rb'\{"kind":"\w+","apiVersion":"[^"]+","metadata":(\{[^{}]*\})')
_METADATA_LAST = re.compile(rb'"metadata":\s*(\{[^{}]*\})\s*\}\s*\Z')
_NAME = re.compile(rb'"name":\s*"([^"]{1,253})"(?:,\s*"generateName":\s*"[^"]*")?,\s*"namespace":\s*"([^"]{1,63})"')
_TOO_MANY, _AWAY = 429, 503
_BUDGET = "DisruptionBudget"
"""Kubernetes' name for the cause of a 429 that tells of a budget, and not of a server with too much to do."""
_LEAST_REST_S, _MOST_REST_S = 1.0, 30.0


_KINDS: Mapping[int, type[ApiError]] = {
    400: RejectedError,
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    405: RejectedError,
    409: ConflictError,
    410: GoneError,
    422: RejectedError,
    429: TooManyRequestsError,
}


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object: the path of its API group, and its plural name."""

    group: str
    plural: str

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection, of an object in it, or of an object's subresource."""
        parts = [self.group]
        parts += ["namespaces", quote(namespace, safe="")] if namespace is not None else []
        parts += [self.plural]
        parts += [quote(part, safe="") for part in (name, subresource) if part is not None]
        return "/" + "/".join(parts)


PODS = Resource("api/v1", "pods")
NODES = Resource("api/v1", "nodes")
QUOTAS = Resource("api/v1", "resourcequotas")
LIMIT_RANGES = Resource("api/v1", "limitranges")
CONFIG_MAPS = Resource("api/v1", "configmaps")
RESOURCE_SLICES = Resource("apis/resource.k8s.io/v1", "resourceslices")
DEVICE_CLASSES = Resource("apis/resource.k8s.io/v1", "deviceclasses")
RESOURCE_CLAIMS = Resource("apis/resource.k8s.io/v1", "resourceclaims")
CLAIM_TEMPLATES = Resource("apis/resource.k8s.io/v1", "resourceclaimtemplates")
EVENTS = Resource("apis/events.k8s.io/v1", "events")
WORKFLOWS = Resource("apis/argoproj.io/v1alpha1", "workflows")


class _Rest:
    """For how long a server wants to be left alone by one kind of request, ``most_s`` at most; monotonic."""

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self.until = -math.inf
        self._length_s = 0.0

    def begin(self, asked: str) -> None:
        """Rest for the seconds that the server ``asked`` for, and for twice as long as before where it goes on so."""
        now = time.monotonic()
        if now < self.until:
            return  # of several calls that were under way, the first has told
        try:
            wait = urllib3.Retry().parse_retry_after(asked)
        except (InvalidHeader, ValueError, OverflowError):
            wait = _LEAST_REST_S
        self._length_s = min(max(wait, 2 * self._length_s, _LEAST_REST_S), self._most_s)
        self.until = now + self._length_s

    def end(self) -> None:
        """Note that the server takes such requests again."""
        self._length_s = 0.0


class KubeApi:
    """An API server and an account at it. Safe to use from several threads.

    ``may_write`` is asked before each call that changes something, on whatever thread it is made.
    """

    _ahead_s: float | None = None
    """By how many seconds the server's Unix time is ahead of the monotonic clock; None before it has told."""

    def __init__(self, configuration: client.Configuration, read_s: float = _READ_S) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.retries = False  # callers know better when to try again, and what by then
        self.configuration = configuration
        self.may_write: Callable[[], bool] = lambda: True
        self._read_s = read_s
        # A caller that cannot wait long for an answer, as to renew a lease, cannot rest for long either.
        most_s = min(_MOST_REST_S, read_s)
        self._reading, self._writing = _Rest(most_s), _Rest(most_s)
        self._pool: urllib3.PoolManager = client.ApiClient(configuration).rest_client.pool_manager

    @classmethod
    def load(cls, kubeconfig: str | None = None, context: str | None = None, *, read_s: float = _READ_S) -> "KubeApi":
        """Return access by a kubeconfig file, or by the pod's service account where neither argument is given.

        ``read_s`` bounds the seconds between two pieces of an answer.

        Raises:
            NoConfigurationError: there is no usable configuration.
        """
        configuration = client.Configuration()
        try:
            if kubeconfig is None and context is None and _TOKEN.exists():
                config.load_incluster_config(client_configuration=configuration)
            else:
                config.load_kube_config(kubeconfig, context, client_configuration=configuration, persist_config=False)
        except (ConfigException, OSError) as error:
            message = f"no access to Kubernetes: {error}; name a file with --kubeconfig, or run inside the cluster"
            raise NoConfigurationError(message) from error
        return cls(configuration, read_s)

    def close(self) -> None:
        """Close the connections that are kept; a later call opens new ones."""
        self._pool.clear()

    @property
    def host(self) -> str:
        """URL of the API server."""
        return str(self.configuration.host).rstrip("/")

    def epoch(self) -> float | None:
        """Return Unix seconds by the API server's clock, to the second; None before it has answered.

        That clock stamps all objects. Ours may be set at any time, and moves this by nothing.
        """
        return None if self._ahead_s is None else time.monotonic() + self._ahead_s

    def headers(self) -> dict[str, str]:
        """Return the headers of authorisation; an expired token is read again."""
        bearer = self.configuration.auth_settings().get("BearerToken")
        return {"authorization": str(bearer["value"])} if bearer and bearer.get("value") else {}

    def check_may_write(self) -> None:
        """Return if this controller may change something now.

        Raises:
            NotAllowedNowError: it may not.
        """
        if not self.may_write():
            message = "this controller may change nothing: another one leads, or it only recommends"
            raise NotAllowedNowError(message)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return the object or list at ``path``.

        Raises:
            ApiError: of the kind that fits.
        """
        return self._json("GET", path, query)

    def create(self, path: str, body: Json) -> Json:
        """Create ``body`` in the collection at ``path``.

        Raises:
            ApiError: of the kind that fits; ``ConflictError`` where it exists.
        """
        return self._json("POST", path, body=body)

    def ask(self, path: str, body: Json) -> Json:
        """Return the answer to a question that is asked as an object to create, and changes nothing.

        Raises:
            ApiError: of the kind that fits.
        """
        return self._json("POST", path, body=body, changes=False)

    def patch(self, path: str, body: Json, kind: str = MERGE) -> Json:
        """Apply a patch; ``metadata.uid`` or ``resourceVersion`` in it makes it conditional.

        Raises:
            ApiError: of the kind that fits; ``ConflictError`` where the condition fails.
        """
        return self._json("PATCH", path, body=body, kind=kind)

    def replace(self, path: str, body: Json) -> Json:
        """Put ``body`` in place of the object at ``path``.

        Raises:
            ApiError: of the kind that fits; ``ConflictError`` where ``metadata.resourceVersion`` is old.
        """
        return self._json("PUT", path, body=body)

    def delete(self, path: str, uid: str) -> None:
        """Delete the object at ``path`` if it still is the one with ``uid``.

        Raises:
            ApiError: of the kind that fits.
        """
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        self._json("DELETE", path, body=body)

    def pages(self, path: str, query: Mapping[str, str], limit: int) -> Iterator[Json]:
        """Yield the parts of a list, ``limit`` items each; ``metadata.resourceVersion`` is that of the whole list.

        Of a list that is read item by item, one that is too large is left out.

        Raises:
            GoneError: the list took so long that its rest is gone; begin again.
            ApiError: of another kind.
        """
        token = ""
        while True:
            try:
                page = self.get(path, {**query, "limit": str(limit), **({"continue": token} if token else {})})
            except TooLargeError as error:
                if limit > 1 or not error.metadata:
                    raise
                _LOG.warning("an object is left out: %s", error)
                page = {"metadata": error.metadata}
            yield page
            token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                return

    def open_watch(self, path: str, query: Mapping[str, str], read_s: float) -> urllib3.BaseHTTPResponse:
        """Open a watch; the caller reads lines from the response and releases it.

        Raises:
            ApiError: of the kind that fits.
        """
        return self._request("GET", path, {**query, "watch": "true"}, read_s=read_s)

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Json | None = None,
        kind: str = "application/json",
        changes: bool = True,
    ) -> Json:
        if changes and method != "GET":
            self.check_may_write()
        response = self._request(method, path, query or {}, body=body, kind=kind)
        content = b""
        try:
            content = _bounded(response, _MOST_ANSWER)
            answer = parsed(content, _MOST_PARTS)
        except (TooManyPartsError, TooDeepError) as error:
            message = f"{method} {path}: {error}: {_first_named(content)}"
            raise TooLargeError(message, _list_metadata(content)) from error
        except (ValueError, HTTPError, OSError) as error:
            message = f"{method} {path}: the answer is no JSON: {str(error)[:200]}"
            raise UnavailableError(message) from error
        finally:
            response.release_conn()
        return answer if isinstance(answer, dict) else {}

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Json | None = None,
        kind: str = "application/json",
        read_s: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        rest = self._reading if method == "GET" else self._writing
        if (left := rest.until - time.monotonic()) > 0:
            # Not asked at all: what is asked in vain keeps an API server busy, too.
            message = f"{method} {path}: the API server asked to be left alone for another {left:.1f} s"
            raise TooManyRequestsError(message)
        url = f"{self.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {**self.headers(), "accept": "application/json"}
        if body is not None:
            headers["content-type"] = kind
        try:
            response = self._pool.request(
                method,
                url,
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(connect=_CONNECT_S, read=read_s or self._read_s),
                preload_content=False,
                redirect=False,  # it would take the token along, to whatever host
                retries=False,
            )
        except (HTTPError, OSError) as error:
            message = f"{method} {path}: the API server does not answer: {str(error)[:200]}"
            raise UnavailableError(message) from error
        with suppress(ValueError, OverflowError, TypeError):  # it tells none, or none that makes sense
            dated = email.utils.parsedate_to_datetime(response.headers.get("Date", ""))
            self._ahead_s = dated.timestamp() - time.monotonic()
        if response.status < 300:  # noqa: PLR2004 - HTTP's own classes
            rest.end()
            return response
        asked, failure = response.headers.get("Retry-After", ""), _failure(method, path, response)
        busy = response.status == _TOO_MANY or (response.status == _AWAY and asked)
        if busy and not isinstance(failure, BudgetError):
            rest.begin(asked)
        raise failure


def _bounded(response: urllib3.BaseHTTPResponse, most: int) -> bytes:
    content = response.read(most + 1)
    if len(content) > most:
        response.close()  # with the rest unread, its connection is of no more use
        message = f"the answer has more than {most} bytes"
        raise TooLargeError(message)
    return content


def _first_named(content: bytes) -> str:
    """Return how people find the first object of an answer that cannot be parsed."""
    named = _NAME.search(content)
    return f"the first object is {named[2].decode()}/{named[1].decode()}" if named else "no object is named in it"


def _list_metadata(content: bytes) -> Json:
    """Return the metadata of a list that cannot be parsed whole: they are its very beginning or its very end."""
    metadata = _METADATA_FIRST.match(content) or _METADATA_LAST.search(content[-_MOST_METADATA:])
    try:
        return dict(plain_json(metadata[1])) if metadata else {}
    except ValueError:
        return {}


def _failure(method: str, path: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    status: Any = None
    try:
        status = plain_json(response.read(_MOST_ERROR))
        detail = str(status.get("message"))
    except (ValueError, AttributeError, HTTPError, OSError):
        detail = "no reason given"
    finally:
        response.close()
    kind = _KINDS.get(response.status, UnavailableError)
    if kind is TooManyRequestsError:
        budgets = [cause for cause in mappings(status, "details", "causes") if text(cause, "reason") == _BUDGET]
        if budgets:
            kind, detail = BudgetError, text(budgets[0], "message") or detail
    return kind(f"{method} {path}: {response.status}: {detail[:500]}")
