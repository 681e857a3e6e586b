"""What the user may do, and the service account of the sweep's pods."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hera_specon.doctor.facts import Permission, PermissionFacts, Unread, Why
from hera_specon.doctor.findings import Finding, fault, ok, unknown, warning

ARGO: Final = "argoproj.io"
READ: Final = (Permission("list", "workflows", ARGO), Permission("get", "workflows", ARGO))
_PATCH: Final = Permission("patch", "workflows", ARGO)
_LIST_PODS: Final = Permission("list", "pods")
OPEN_GATES: Final = Permission("patch", "pods")
RESIZE: Final = Permission("patch", "pods/resize")
CREATE: Final = Permission("create", "workflows", ARGO)
EXECUTOR: Final = (Permission("create", "workflowtaskresults", ARGO), Permission("patch", "workflowtaskresults", ARGO))


@dataclass(frozen=True, slots=True)
class _Command:
    """A command of ours and what it asks the API server for."""

    name: str
    needs: tuple[Permission, ...]


_SUBMIT: Final = _Command("specon submit", (CREATE, Permission("get", "workflows", ARGO)))
_OTHERS: Final = (
    _Command("specon status", (*READ, _LIST_PODS)),
    _Command("specon pause, resume, stop and set-policy", (*READ, _LIST_PODS, _PATCH)),
    _Command("specon release", (*READ, _LIST_PODS, _PATCH, OPEN_GATES)),
)
USER: Final = tuple(dict.fromkeys([*(need for one in (_SUBMIT, *_OTHERS) for need in one.needs), RESIZE]))
"""What is asked of the user's permissions."""


def check_permissions(facts: PermissionFacts) -> Iterator[Finding]:
    """Yield what the user may not do, and whether the sweep's pods may report."""
    yield _check_command(_SUBMIT, facts)
    for command in _OTHERS:
        yield _check_command(command, facts)
    yield from _check_account(facts)


def _check_command(command: _Command, facts: PermissionFacts) -> Finding:
    subject = f"you: {command.name}"
    lacking = [need for need in command.needs if facts.user.get(need) is False]
    if lacking:
        judge = fault if command is _SUBMIT else warning
        short = "-".join(command.name.partition(",")[0].split())
        advice = f"Ask an administrator of {facts.name} for a role with that, bound to you."
        roles = " && ".join(
            _role(f"{short}-{_plain(resource)}", resource, verbs, facts.name)
            for resource, verbs in _by_resource(lacking)
        )
        return judge(subject, f"you may not {_words(lacking)}", advice, roles)
    if any(facts.user.get(need) is None for need in command.needs):
        advice = "This API server did not say what you may do; see what kubectl says."
        return unknown(subject, "not answered", advice, f"kubectl auth can-i --list -n {facts.name}")
    return ok(subject, f"you may {_words(command.needs)}")


def _check_account(facts: PermissionFacts) -> Iterator[Finding]:
    subject, name = "service account", f"{facts.name}/{facts.account}"
    if isinstance(facts.account_object, Unread) and facts.account_object.why is Why.MISSING:
        advice = "Make it, or name another one in the workflow."
        yield fault(
            subject, f"there is no {name}", advice, f"kubectl create serviceaccount {facts.account} -n {facts.name}"
        )
        return
    lacking = [need for need in EXECUTOR if facts.executor.get(need) is False]
    if lacking:
        yield executor_fault(facts.name, facts.account, f"{name} may not {_words(lacking)}")
    elif any(facts.executor.get(need) is None for need in EXECUTOR):
        advice = "You may not ask what it may do; the try-out pod shows whether Argo's executor can report."
        yield unknown(subject, name, advice, f"kubectl get rolebindings -n {facts.name} -o wide")
    else:
        yield ok(subject, f"{name} may {_words(EXECUTOR)}")


def executor_fault(namespace: str, account: str, found: str) -> Finding:
    """Return that Argo's executor in the pods cannot report how they ended."""
    role = _role("specon-sweep-executor", EXECUTOR[0].whole_name, [need.verb for need in EXECUTOR], namespace)
    binding = (
        f"kubectl create rolebinding specon-sweep-executor -n {namespace} --role=specon-sweep-executor "
        f"--serviceaccount={namespace}:{account}"
    )
    advice = "Argo does not learn how a trial ended without it: give the account Argo's executor role."
    return fault("service account", found, advice, f"{role} && {binding}")


def _by_resource(needs: Iterable[Permission]) -> Iterable[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for need in needs:
        found.setdefault(need.whole_name, []).append(need.verb)
    return found.items()


def _words(needs: Iterable[Permission]) -> str:
    return ", ".join(f"{'/'.join(verbs)} {resource}" for resource, verbs in _by_resource(needs))


def _plain(resource: str) -> str:
    return resource.partition(".")[0].replace("/", "-")


def _role(name: str, resource: str, verbs: Iterable[str], namespace: str) -> str:
    return f"kubectl create role {name} -n {namespace} --verb={','.join(verbs)} --resource={resource}"
