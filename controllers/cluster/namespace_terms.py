"""What a platform grants its namespaces, from the file that its owner mounts: every problem is named at once."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.utils.quantity import parse_quantity

from controllers.cluster.settings import ControllerSettingsError
from controllers.core import foreign_yaml
from controllers.core.devices import is_device
from controllers.policies.arbiter import NamespaceTerms
from controllers.policies.arbiter.demands import Terms

LEAST_WEIGHT: Final = 0.01
MOST_WEIGHT: Final = 1000.0
MOST_PRIORITY: Final = 1000
_FIELDS: Final = ("weight", "priority", "quota")


def read_terms(file: Path) -> Terms:
    """Return what a YAML file grants each namespace.

    Raises:
        ControllerSettingsError: it cannot be read, or something in it makes no sense; the message lists everything.
    """
    try:
        content = foreign_yaml.parsed(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        message = f"--shares {file} cannot be read: {error}"
        raise ControllerSettingsError(message) from error
    given = content.get("namespaces", {}) if isinstance(content, dict) else None
    if not isinstance(given, dict) or content.keys() - {"namespaces"}:
        message = f"--shares {file} has no mapping `namespaces:` of names to weight, priority and quota, and only that"
        raise ControllerSettingsError(message)
    problems = [problem for name, terms in given.items() for problem in _problems(str(name), terms)]
    if problems:
        message = f"--shares {file} makes no sense:\n" + "\n".join(f"  {problem}" for problem in problems)
        raise ControllerSettingsError(message)
    return {str(name): _terms(terms or {}) for name, terms in given.items()}


def _problems(name: str, terms: object) -> Iterator[str]:
    if terms is not None and not isinstance(terms, dict):
        yield f"{name}: {terms!r} is no mapping of {', '.join(_FIELDS)}"
        return
    given = terms or {}
    for unknown in sorted(map(str, given.keys() - set(_FIELDS))):
        yield f"{name}: {unknown!r} is none of {', '.join(_FIELDS)}"
    weight, priority, quota = given.get("weight", 1), given.get("priority", 0), given.get("quota") or {}
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        yield f"{name}: weight {weight!r} is no number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > MOST_PRIORITY:
        yield f"{name}: priority {priority!r} is no whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}"
    if not isinstance(quota, dict):
        yield f"{name}: quota {quota!r} is no mapping of cpu, memory and devices to amounts"
        return
    for resource, amount in quota.items():
        if resource not in {"cpu", "memory"} and not (isinstance(resource, str) and is_device(resource)):
            yield f"{name}: quota of {resource!r}, which is neither cpu, memory nor a device such as nvidia.com/gpu"
        elif _amount(amount) is None:
            yield f"{name}: quota of {resource} {amount!r} is no amount of 0 or more, such as 8, 500m or 64Gi"


def _terms(given: Mapping[str, Any]) -> NamespaceTerms:
    quota: Mapping[str, object] = given.get("quota") or {}
    devices = {kind: int(_amount(most) or 0) for kind, most in quota.items() if kind not in {"cpu", "memory"}}
    return NamespaceTerms(
        weight=float(given.get("weight", 1)),
        priority=int(given.get("priority", 0)),
        quota_cpu=_amount(quota["cpu"]) if "cpu" in quota else None,
        quota_memory=_amount(quota["memory"]) if "memory" in quota else None,
        quota_devices=tuple(sorted(devices.items())),
    )


def _amount(written: object) -> float | None:
    """Return a quantity of Kubernetes', None where it is none or below 0."""
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return None
    try:
        amount = float(parse_quantity(str(written)))
    except (ValueError, ArithmeticError):
        return None
    return amount if 0 <= amount < float("inf") else None
