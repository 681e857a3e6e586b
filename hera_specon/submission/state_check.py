"""Whether checkpoints outlive a move: the state root must lie on a volume that every node mounts. Pure."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from hera_specon.submission.trial_templates import Manifest, program, variable
from mlflow_hooks.contract import ENV_STATE_ROOT

_OF_ONE_POD: Final = frozenset({"emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image"})
_OF_ONE_NODE: Final = frozenset(
    {"awsElasticBlockStore", "azureDisk", "cinder", "fc", "gcePersistentDisk", "iscsi", "rbd", "vsphereVolume"}
)
_SHARED_MODE: Final = "ReadWriteMany"
ADVICE: Final = "give it a shared one: Sweep(state_claim='NAME of a ReadWriteMany PersistentVolumeClaim')"


def state_problem(template: Manifest, spec: Manifest) -> str | None:
    """Return why a trial that moves would lose its checkpoints, None where it would not."""
    root = variable(template, ENV_STATE_ROOT)
    if not root:
        return f"sets no {ENV_STATE_ROOT}; build it with Sweep"
    mount = _mount_of(template, root)
    if mount is None:
        return f"keeps checkpoints in {root}, where no volume is mounted: a trial that moves loses them; {ADVICE}"
    if mount.get("readOnly"):
        return f"keeps checkpoints in {root}, which is mounted read-only"
    why = _not_shared(str(mount.get("name")), template, spec)
    return None if why is None else f"keeps checkpoints in {root}, {why}: a trial that moves loses them; {ADVICE}"


def state_claim(template: Manifest, spec: Manifest) -> str | None:
    """Return the name of the claim that a trial keeps its state on, None where it is no existing claim."""
    mount = _mount_of(template, variable(template, ENV_STATE_ROOT))
    volume = {} if mount is None else _volumes(template, spec).get(str(mount.get("name")), {})
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    return str(claim) if claim and "{{" not in str(claim) else None


def is_host_path(template: Manifest, spec: Manifest) -> bool:
    """Return whether a trial keeps its state in a folder of its node, which may or may not be the same everywhere."""
    mount = _mount_of(template, variable(template, ENV_STATE_ROOT))
    return mount is not None and "hostPath" in _volumes(template, spec).get(str(mount.get("name")), {})


def _mount_of(template: Manifest, root: str) -> Manifest | None:
    mounts = [mount for mount in program(template).get("volumeMounts") or [] if _covers(mount, root)]
    return max(mounts, key=lambda mount: len(str(mount["mountPath"])), default=None)


def _covers(mount: Manifest, root: str) -> bool:
    where = str(mount.get("mountPath") or "")
    return bool(where and root) and PurePosixPath(root).is_relative_to(where)


def _volumes(template: Manifest, spec: Manifest) -> dict[str, Any]:
    found = [*(spec.get("volumes") or []), *(template.get("volumes") or [])]
    return {str(volume.get("name")): volume for volume in found}


def _not_shared(name: str, template: Manifest, spec: Manifest) -> str | None:
    volume = _volumes(template, spec).get(name)
    if volume is None:
        modes = next((modes for claimed, modes in _claimed(spec) if claimed == name), None)
        if modes is None:
            return f"on volume {name!r}, which is not there"
        return None if _SHARED_MODE in modes else f"on a claim that one node at a time can mount ({', '.join(modes)})"
    if kind := next(iter(_OF_ONE_POD & volume.keys()), None):
        return f"on a volume of the pod alone ({kind})"
    if kind := next(iter(_OF_ONE_NODE & volume.keys()), None):
        return f"on a disk that one node at a time can mount ({kind})"
    return None


def _claimed(spec: Manifest) -> Iterator[tuple[str, list[str]]]:
    for claim in spec.get("volumeClaimTemplates") or []:
        name = str((claim.get("metadata") or {}).get("name"))
        yield name, [str(mode) for mode in (claim.get("spec") or {}).get("accessModes") or []]
