"""The two ways to a workflow: straight to the API server, or through Argo Server."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

import requests
import urllib3
from hera.exceptions import HeraException
from hera.workflows import WorkflowsService
from pydantic import ValidationError

from controllers.core.errors import SpeconError
from controllers.worlds.argo.calls.api import WORKFLOWS, Json, KubeApi
from controllers.worlds.argo.calls.errors import NotFoundError
from controllers.worlds.argo.calls.untrusted import text
from mlflow_hooks.foreign_json import parsed

_MOST_ANSWER: Final = 64 * 2**20
_THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_TIMEOUT_S: Final = (5.0, 30.0)


class ArgoServerError(SpeconError):
    """Argo Server did not do what was asked."""


@dataclass(frozen=True, slots=True)
class Created:
    """A workflow as the cluster has it now."""

    name: str
    namespace: str
    uid: str


class KubeChannel:
    """Straight to the API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def create(self, namespace: str, manifest: Json) -> Created:
        """Create the workflow."""
        try:
            return _read_created(self._api.create(WORKFLOWS.path(namespace), manifest))
        except NotFoundError as error:
            message = (
                f"{self._api.host} knows no Argo workflows or no namespace {namespace!r}: is Argo installed there?"
            )
            raise SpeconError(message) from error

    def workflow(self, namespace: str, name: str) -> Json:
        """Return the workflow as it is now."""
        return self._api.get(WORKFLOWS.path(namespace, name))

    def page(self, _created: Created) -> str | None:
        """Return None: an API server has no pages."""
        return None


class ArgoServerChannel:
    """Through Argo Server, by Hera's own service.

    Args:
        url: Such as ``https://argo.lab:2746``.
        token: The bearer token, with or without ``Bearer``.
        verify: Whether to check the server's certificate, or the file of the authority to check it against.

    Raises:
        ArgoServerError: ``url`` is no address, or would carry the token in the clear.
    """

    def __init__(self, url: str, token: str | None, verify: bool | str) -> None:  # noqa: FBT001 - as requests has it
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            message = f"--argo-server {url!r} is not an address such as https://argo.lab:2746"
            raise ArgoServerError(message)
        if token and verify and parts.scheme == "http" and parts.hostname not in _THIS_MACHINE:
            message = (
                f"--argo-server {url!r} would carry your token unencrypted; use https, or "
                "--insecure-skip-tls-verify where nobody else is on that network"
            )
            raise ArgoServerError(message)
        if not verify:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # it was asked for, once is enough
        self._url = url.rstrip("/")
        self._service = WorkflowsService(
            host=f"{self._url}/", token=token, verify_ssl=cast("bool", verify), session=_Patient()
        )

    def create(self, namespace: str, manifest: Json) -> Created:
        """Create the workflow; it is sent as it is, with fields that Hera's models do not know."""
        request: Any = _AsItIs({"namespace": namespace, "workflow": manifest})
        try:
            made = self._service.create_workflow(request, quote(namespace, safe=""))
        except (HeraException, requests.RequestException, ValidationError, ValueError, KeyError, TypeError) as error:
            raise self._failure(error) from error
        metadata = made.metadata
        return Created(metadata.name or "", metadata.namespace or namespace, metadata.uid or "")

    def workflow(self, namespace: str, name: str) -> Json:
        """Return the workflow as it is now."""
        url = f"{self._url}/api/v1/workflows/{quote(namespace, safe='')}/{quote(name, safe='')}"
        headers = {"Authorization": self._service.token} if self._service.token else {}
        try:
            answer = self._service.session.get(url, headers=headers, verify=self._service.verify_ssl)
            answer.raise_for_status()
            manifest = parsed(answer.content)
        except (requests.RequestException, ValueError) as error:
            raise self._failure(error) from error
        return manifest if isinstance(manifest, dict) else {}

    def page(self, created: Created) -> str | None:
        """Return the workflow's page in Argo's own interface."""
        return f"{self._url}/workflows/{quote(created.namespace)}/{quote(created.name)}"

    def _failure(self, error: Exception) -> ArgoServerError:
        return ArgoServerError(f"Argo Server at {self._url}: {str(error)[:500] or type(error).__name__}")


Channel = KubeChannel | ArgoServerChannel
"""A way to create a workflow and to read it back; it raises ``SpeconError`` where that is refused or nobody answers."""


class _Patient(requests.Session):
    """A session whose every request has a time limit, takes no token elsewhere and no endless answer."""

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # noqa: ANN401 - as the base has them
        answer = super().request(*args, **{**kwargs, "timeout": _TIMEOUT_S, "allow_redirects": False, "stream": True})
        content = b""
        for chunk in answer.iter_content(2**16):
            content += chunk
            if len(content) > _MOST_ANSWER:
                answer.close()
                message = f"an answer of more than {_MOST_ANSWER} bytes"
                raise requests.RequestException(message)
        answer._content = content  # noqa: SLF001 - requests has no other way to bound an answer
        return answer


class _AsItIs:
    """Stands in for a request model of Hera's, which would drop the fields that it does not know."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._body = body

    def json(self, **_: object) -> str:
        """Return the body."""
        return json.dumps(self._body)


def _read_created(workflow: Json) -> Created:
    return Created(*(text(workflow, "metadata", name) for name in ("name", "namespace", "uid")))
