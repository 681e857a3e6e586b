"""The one volume that the local world stands in for: the folder in which trials keep their state."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from controllers.worlds.local.workflow.findings import Findings
from mlflow_hooks.contract import ENV_STATE_ROOT

_WHY: Final = f"the local world has no volumes but the folder of {ENV_STATE_ROOT}, which it gives to each step itself"


def check_volumes(found: Findings, spec: Mapping[str, Any]) -> None:
    """Note every volume and mount other than those that hold the trials' state."""
    mounts = list(_mounts(found, spec))
    state = {name for name, _, is_state in mounts if is_state}
    for _, path, is_state in mounts:
        if not is_state:
            found.unsupported(path, _WHY)
    for name, path in _volumes(found, spec):
        if name not in state:
            found.unsupported(path, _WHY)


def _mounts(found: Findings, spec: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    for main, path in _containers(found, spec):
        roots = [
            str(item.get("value", ""))
            for item in found.sequence(main.get("env"), f"{path}.env")
            if isinstance(item, Mapping) and item.get("name") == ENV_STATE_ROOT
        ]
        for index, item in enumerate(found.sequence(main.get("volumeMounts"), f"{path}.volumeMounts")):
            mount = found.mapping(item, f"{path}.volumeMounts[{index}]")
            where = str(mount.get("mountPath", ""))
            is_state = any(PurePosixPath(root).is_relative_to(where) for root in roots if root and where)
            yield str(mount.get("name")), f"{path}.volumeMounts[{index}]", is_state


def _containers(found: Findings, spec: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    for index, template in enumerate(found.sequence(spec.get("templates"), "spec.templates")):
        for kind in ("container", "script"):
            if isinstance(template, Mapping) and isinstance(template.get(kind), Mapping):
                yield template[kind], f"spec.templates[{index}].{kind}"


def _volumes(found: Findings, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(found.sequence(spec.get("volumes"), "spec.volumes")):
        yield str(found.mapping(item, f"spec.volumes[{index}]").get("name")), f"spec.volumes[{index}]"
    for index, item in enumerate(found.sequence(spec.get("volumeClaimTemplates"), "spec.volumeClaimTemplates")):
        claim = found.mapping(item, f"spec.volumeClaimTemplates[{index}]")
        metadata = found.mapping(claim.get("metadata"), f"spec.volumeClaimTemplates[{index}].metadata")
        yield str(metadata.get("name")), f"spec.volumeClaimTemplates[{index}]"
    for number, template in enumerate(found.sequence(spec.get("templates"), "spec.templates")):
        path = f"spec.templates[{number}].volumes"
        volumes = template.get("volumes") if isinstance(template, Mapping) else None
        for index, item in enumerate(found.sequence(volumes, path)):
            yield str(found.mapping(item, f"{path}[{index}]").get("name")), f"{path}[{index}]"
