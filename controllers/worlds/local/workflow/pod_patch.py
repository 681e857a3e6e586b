"""What of a podSpecPatch has a meaning on one machine."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from controllers.core.expressions import GATE_FIRST, GATE_MOVED, inside
from controllers.core.labels import GATE_PLACEMENT
from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.substitute import find_tags, substitute_known

DEFAULT_GRACE_S: Final = 30.0
"""Kubernetes' terminationGracePeriodSeconds."""

_GRACE: Final = "terminationGracePeriodSeconds"
# Gates hold a pod until a controller has chosen its node; the local world does so before it starts a process.
_NO_GATES: Final = {inside(GATE_MOVED): "[]", inside(GATE_FIRST): "[]"}
_HELPERS: Final = {"containers": "wait", "initContainers": "init"}
"""Argo's own containers beside a step's; a step is one process here, so what they are given is left aside."""


def grace_s(found: Findings, node: Mapping[str, Any], path: str, shared: Mapping[str, Any]) -> float:
    """Return the seconds between SIGTERM and SIGKILL of the template ``node``; ``shared`` is the workflow's spec."""
    grace = DEFAULT_GRACE_S
    for source, where in ((shared, "spec"), (node, path)):
        patch = _patch(found, source.get("podSpecPatch"), f"{where}.podSpecPatch")
        for name, value in patch.items():
            if name == _GRACE and (seconds := found.whole(value, f"{where}.podSpecPatch.{name}")) is not None:
                grace = float(seconds)
            elif name != _GRACE and not _left_aside(name, value):
                found.unsupported(f"{where}.podSpecPatch.{name}", f"only {_GRACE} has a meaning here")
    return grace


def _left_aside(name: str, value: object) -> bool:
    """Return whether ``name`` is a gate of ours or the resources of Argo's own containers."""
    if not isinstance(value, list):
        return False
    if name == "schedulingGates":
        return all(item == {"name": GATE_PLACEMENT} for item in value)
    return name in _HELPERS and all(
        isinstance(item, Mapping) and item.get("name") == _HELPERS[name] and item.keys() <= {"name", "resources"}
        for item in value
    )


def _patch(found: Findings, text: object, path: str) -> Mapping[str, Any]:
    if text is None:
        return {}
    known = substitute_known(text, _NO_GATES)
    if any(find_tags(known)):
        found.unsupported(path, "only a patch without {{...}} can be read here")
        return {}
    try:
        return found.mapping(yaml.safe_load(found.text(known, path)), path)
    except yaml.YAMLError as error:
        found.malformed(path, f"is not YAML: {error}")
        return {}
