"""Reads of an API server that say why they failed instead of failing."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import ApiError, ForbiddenError, NotFoundError
from controllers.worlds.argo.calls.untrusted import at, mappings
from hera_specon.doctor.facts import Allowed, Answer, Listing, Permission, Unread, Why

REVIEWS: Final = "/apis/authorization.k8s.io/v1"
_PAGE: Final = 200
_MOST_PAGES: Final = 5
_MOST_WORDS: Final = 300
_Read = TypeVar("_Read")


def ask(read: Callable[[], _Read]) -> _Read | Unread:
    """Return what ``read`` returns, or why the API server did not answer."""
    try:
        return read()
    except ForbiddenError as error:
        return Unread(Why.FORBIDDEN, str(error)[:_MOST_WORDS])
    except NotFoundError as error:
        return Unread(Why.MISSING, str(error)[:_MOST_WORDS])
    except ApiError as error:
        return Unread(Why.UNANSWERED, str(error)[:_MOST_WORDS])


def look(api: KubeApi, path: str) -> Answer:
    """Return the object at ``path``."""
    return ask(lambda: api.get(path))


def look_at_all(api: KubeApi, path: str, query: Mapping[str, str] | None = None) -> Listing:
    """Return the objects of the list at ``path``, a thousand at most."""

    def read() -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for number, page in enumerate(api.pages(path, query or {}, _PAGE), start=1):
            found += mappings(page, "items")
            if number == _MOST_PAGES:
                break
        return found

    return ask(read)


def may_i(api: KubeApi, namespace: str, needs: tuple[Permission, ...]) -> Allowed:
    """Return what this user may do in the namespace."""
    path = f"{REVIEWS}/selfsubjectaccessreviews"
    return {need: _reviewed(api, path, {"resourceAttributes": _attributes(need, namespace)}) for need in needs}


def may_account(api: KubeApi, namespace: str, account: tuple[str, str], needs: tuple[Permission, ...]) -> Allowed:
    """Return what a service account, of a namespace and a name, may do in ``namespace``; None where we may not ask."""
    home, name = account
    path = f"{REVIEWS}/namespaces/{namespace}/localsubjectaccessreviews"
    who = {
        "user": f"system:serviceaccount:{home}:{name}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"],
    }
    allowed: dict[Permission, bool | None] = {}
    for need in needs:
        answer = _reviewed(api, path, {"resourceAttributes": _attributes(need, namespace), **who}, namespace)
        allowed[need] = answer
        if answer is None:
            return dict.fromkeys(needs)
    return allowed


def _attributes(need: Permission, namespace: str) -> dict[str, str]:
    resource, _, subresource = need.resource.partition("/")
    named = {"namespace": namespace, "verb": need.verb, "group": need.group, "resource": resource}
    return {**named, **({"subresource": subresource} if subresource else {})}


def _reviewed(api: KubeApi, path: str, spec: Mapping[str, Any], namespace: str | None = None) -> bool | None:
    kind = "SelfSubjectAccessReview" if namespace is None else "LocalSubjectAccessReview"
    metadata = {} if namespace is None else {"metadata": {"namespace": namespace}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, **metadata, "spec": dict(spec)}
    answer = ask(lambda: api.create(path, body))
    allowed = None if isinstance(answer, Unread) else at(answer, "status", "allowed")
    return allowed if isinstance(allowed, bool) else None
