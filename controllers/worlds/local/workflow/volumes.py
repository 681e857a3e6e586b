"""Volumes of a workflow as folders of this machine: which have a stand-in, and which are refused."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.steps import Mount
from mlflow_hooks.contract import ENV_LEAVE_FILE, ENV_STATE_ROOT
from mlflow_hooks.printed.carried import FOLDER as PYTHON

_CLAIMS: Final = ("persistentVolumeClaim", "ephemeral")
_WHY: Final = "what it holds is on a cluster; here only emptyDir, claims, and a hostPath that there is have a stand-in"


def read_mounts(
    findings: Findings, main: Mapping[str, Any], path: str, node: Mapping[str, Any], spec: Mapping[str, Any]
) -> tuple[Mount, ...]:
    """Return what stands in for the mounts of the container ``main``, but for those that only a pod's trial needs.

    A path that there is on this machine needs none: it is used as it is.

    Args:
        findings: takes what cannot be stood in for.
        main: a container or script.
        path: where it stands.
        node: its template.
        spec: the workflow's spec.
    """
    volumes = dict(_volumes(findings, spec, "spec")) | dict(_volumes(findings, node, path.rpartition(".")[0]))
    of_pods = [
        str(item.get("value", ""))
        for item in findings.sequence(main.get("env"), f"{path}.env")
        if isinstance(item, Mapping) and item.get("name") in {ENV_STATE_ROOT, ENV_LEAVE_FILE}
    ]
    mounts: list[Mount] = []
    for index, item in enumerate(findings.sequence(main.get("volumeMounts"), f"{path}.volumeMounts")):
        where = f"{path}.volumeMounts[{index}]"
        mount = findings.mapping(item, where)
        target = str(mount.get("mountPath", ""))
        is_ours = target == PYTHON or any(
            PurePosixPath(path).is_relative_to(target) for path in of_pods if path and target
        )
        if is_ours or not target or Path(target).is_dir():
            continue
        read = _mount(findings, mount, where, target, volumes)
        mounts += [] if read is None else [read]
    # The longest first: a mount within another one is that of its own.
    return tuple(sorted(mounts, key=lambda mount: (-len(mount.path), mount.path)))


def _mount(
    findings: Findings, mount: Mapping[str, Any], where: str, target: str, volumes: Mapping[str, Mapping[str, Any]]
) -> Mount | None:
    name, inside = str(mount.get("name")), PurePosixPath(str(mount.get("subPath") or "."))
    volume = volumes.get(name)
    if volume is None:
        findings.malformed(where, f"there is no volume {name!r}")
    elif mount.get("subPathExpr") or inside.is_absolute() or ".." in inside.parts:
        findings.unsupported(where, "only a plain subPath within the volume can be followed here")
    elif "emptyDir" in volume:
        return Mount(target, name, str(inside), own=True)
    elif any(kind in volume for kind in _CLAIMS):
        return Mount(target, name, str(inside))
    elif "hostPath" in volume:
        folder = Path(str(findings.mapping(volume["hostPath"], where).get("path", ""))) / inside
        if folder.is_absolute() and folder.is_dir():
            return Mount(target, name, folder=str(folder))
        findings.unsupported(
            where, f"volume {name!r} is the folder {folder} of a node, which is not there on this machine"
        )
    else:
        findings.unsupported(where, f"volume {name!r}: {_WHY}")
    return None


def _volumes(findings: Findings, node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, item in enumerate(findings.sequence(node.get("volumes"), f"{path}.volumes")):
        volume = findings.mapping(item, f"{path}.volumes[{index}]")
        yield str(volume.get("name")), volume
    for index, item in enumerate(findings.sequence(node.get("volumeClaimTemplates"), f"{path}.volumeClaimTemplates")):
        claim = findings.mapping(item, f"{path}.volumeClaimTemplates[{index}]")
        metadata = findings.mapping(claim.get("metadata"), f"{path}.volumeClaimTemplates[{index}].metadata")
        yield str(metadata.get("name")), {"persistentVolumeClaim": {}}
