"""The table of docs/reference/permissions.md, and the rules of roles, in one form."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROLES = frozenset({"observe", "nodes", "act", "lease", "executor"})
TABLE = Path(__file__).parents[2] / "docs" / "reference" / "permissions.md"


@dataclass(frozen=True, order=True)
class Permission:
    """One verb on one resource, in one role."""

    role: str
    group: str
    resource: str
    verb: str


def documented(*components: str) -> Iterator[Permission]:
    """Yield the rows of the table that are left with ``components``; each has a reason and a consequence."""
    for permission, component in _rows():
        if component not in components:
            yield permission


def left_out() -> frozenset[str]:
    """Return the components that leave a permission out."""
    return frozenset(component for _, component in _rows() if component)


def _rows() -> Iterator[tuple[Permission, str]]:
    """Yield each row with the component that leaves it out, empty where none does."""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in ROLES:
            role, group, resource, verb, component, reason, consequence = cells
            assert reason, line
            assert consequence, line
            yield Permission(role, "" if group == "core" else group, resource, verb), component.strip("`")


def granted(role: str, rules: Iterable[Mapping[str, Any]]) -> Iterator[Permission]:
    """Yield what a role's rules grant."""
    for rule in rules:
        assert rule.keys() <= {"apiGroups", "resources", "verbs", "resourceNames"}, rule
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (Permission(role, group, resource, verb) for verb in rule["verbs"])


def bound_to(account: str, objects: Collection[Mapping[str, Any]]) -> Iterator[tuple[str, str, Permission]]:
    """Yield kind and namespace of the binding, and permission, for all that ``objects`` bind to a service account."""
    rules = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in objects if "rules" in one}
    for binding in (one for one in objects if "roleRef" in one):
        if account in {subject["name"] for subject in binding["subjects"]}:
            assert len(binding["subjects"]) == 1
            key = (binding["roleRef"]["kind"], binding["roleRef"]["name"])
            name = re.sub("^specon-(controller|sweep)-", "", key[1])
            for permission in granted(name, rules[key]):
                yield binding["kind"], binding["metadata"].get("namespace", ""), permission
