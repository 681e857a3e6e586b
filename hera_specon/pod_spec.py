"""What a trial's pod needs beyond its own container: gate, grace period, volumes, Argo's helpers, no rights."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import yaml
from hera.workflows import EmptyDirVolume, ExistingVolume
from hera.workflows.models import (
    Capabilities,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    ObjectFieldSelector,
    PodSecurityContext,
    Quantity,
    SeccompProfile,
    SecurityContext,
    Volume,
    VolumeMount,
)

from controllers.core import foreign_yaml, labels
from controllers.core.expressions import (
    HELPER_CPU,
    HELPER_MEMORY,
    gates,
    main_container,
    resource_claims,
    worker_container,
    worker_gates,
)
from hera_specon.errors import SweepError
from hera_specon.hera_internals import HeraVolume
from hera_specon.settings import check_distinct
from mlflow_hooks.printed import carried
from mlflow_hooks.store_address import why_no_store

USER: Final = 65532
"""User and group that trials run as where their author names none: those of the trainer's image."""
_GATES: Final = "schedulingGates"
_MAIN: Final = {"name": "hera-specon.io/main"}
_CLAIMS: Final = ["hera-specon.io/claims"]
"""They stand for the patch of the main container, and for the resource claims, while the rest becomes JSON."""


def pod_patch(  # noqa: PLR0913 - what a pod is made of, each named
    given: str | None,
    sweep: str,
    grace: int,
    *,
    searched: bool,
    gang: bool,
    reader: str | None = None,
    claims: Mapping[str, str] | None = None,
) -> str:
    """Return the podSpecPatch of a trial: the author's own, with ours.

    Args:
        given: The author's patch, YAML or JSON.
        sweep: Name of the sweep.
        grace: Seconds between SIGTERM and SIGKILL.
        searched: Whether a search gives each trial its hyperparameters.
        gang: Whether the pod is that of one worker of several.
        reader: Image that a Python is copied from, to read what the program prints; None where that is not needed.
        claims: ResourceClaimTemplates by the names of the claims that are made by them for each pod.

    Raises:
        SweepError: ``given`` is no mapping, or sets what the sweep sets.
    """
    patch = {} if given is None else _parse_patch(given)
    claimed = {"resourceClaims": _CLAIMS} if claims else {}
    ours: dict[str, Any] = {"terminationGracePeriodSeconds": grace, **claimed, _GATES: []}
    set_by = "the grace period by grace=, resource claims by resource_claims="
    check_distinct([*patch, *ours], f"pod_spec_patch= sets what the sweep sets itself ({set_by})")
    helpers = _with_helpers(patch)
    helpers["containers"].append(_MAIN)
    if reader is not None:
        helpers["initContainers"].append(_carrier(reader))
    text = json.dumps({**patch, **helpers, **ours})
    # Expressions stand for lists and a mapping, so they cannot be put in before the rest is JSON.
    text = text.replace(json.dumps(_CLAIMS), resource_claims(sweep, claims or {}, gang=gang))
    main = worker_container(sweep) if gang else main_container(sweep)
    gated = worker_gates(sweep, first=searched) if gang else gates(sweep, every=searched)
    return f"{text.replace(json.dumps(_MAIN), main).removesuffix('[]}')}{gated}}}"


def pod_security() -> PodSecurityContext:
    """Return a pod's security context that the restricted Pod Security Standard takes; volumes belong to its group."""
    return PodSecurityContext(
        run_as_non_root=True,
        run_as_user=USER,
        run_as_group=USER,
        fs_group=USER,
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )


def container_security() -> SecurityContext:
    """Return a container's security context that the restricted Pod Security Standard takes."""
    return SecurityContext(allow_privilege_escalation=False, capabilities=Capabilities(drop=["ALL"]))


def helpers_patch() -> str:
    """Return the podSpecPatch of a pod that is no trial's: what Argo's own containers request."""
    return json.dumps(_with_helpers({}))


def _with_helpers(patch: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the author's patches of containers, with what Argo's own two request."""
    return {
        "containers": [*_with_helper(patch.get("containers"), "wait")],
        "initContainers": [*_with_helper(patch.get("initContainers"), "init")],
    }


def _with_helper(given: object, name: str) -> list[Any]:
    """Return the author's patches of containers, and ours of Argo's container ``name`` where they have none."""
    patches = given if isinstance(given, list) else []
    if any(isinstance(patch, dict) and patch.get("name") == name for patch in patches):
        return patches
    return [*patches, {"name": name, "resources": {"requests": {"cpu": HELPER_CPU, "memory": HELPER_MEMORY}}}]


def _parse_patch(patch: str) -> Mapping[str, Any]:
    try:
        given = foreign_yaml.parsed(patch)
    except yaml.YAMLError as error:
        problem = f"pod_spec_patch= is no YAML: {patch!r}"
        raise SweepError(problem) from error
    if not isinstance(given, dict):
        problem = f"pod_spec_patch= is a mapping of a pod's fields, not {patch!r}"
        raise SweepError(problem)
    return given


_PYTHON: Final = "specon-python"
"""Name of the volume, and of the container that fills it, with a Python for a program whose image has none."""
_PYTHON_SIZE: Final = "512Mi"


def _carrier(image: str) -> dict[str, Any]:
    """Return the init container that copies the Python of ``image``, as a patch of the pod."""
    return {
        "name": _PYTHON,
        "image": image,
        "command": ["python3", "-P", "-m", carried.__name__, carried.FOLDER],
        "resources": {"requests": {"cpu": HELPER_CPU, "memory": HELPER_MEMORY}},
        "volumeMounts": [{"name": _PYTHON, "mountPath": carried.FOLDER}],
        "securityContext": container_security().model_dump(by_alias=True, exclude_none=True),
    }


def python_volume() -> Volume:
    """Return the volume with that Python."""
    return Volume(name=_PYTHON, empty_dir=EmptyDirVolumeSource(size_limit=Quantity(root=_PYTHON_SIZE)))


def python_mount() -> VolumeMount:
    """Return where that volume is mounted."""
    return VolumeMount(name=_PYTHON, mount_path=carried.FOLDER, read_only=True)


_LEAVE: Final = "specon-leave"
_LEAVE_FOLDER: Final = "/var/run/hera-specon"
_LEAVE_NAME: Final = "leave"
LEAVE_FILE: Final = f"{_LEAVE_FOLDER}/{_LEAVE_NAME}"
"""Where a trial's program sees that it is asked to leave, if its controller may send no signals."""


def leave_volume() -> Volume:
    """Return the volume in which Kubernetes shows a trial's program one annotation of its pod, and no other."""
    field = ObjectFieldSelector(field_path=f"metadata.annotations['{labels.ANNOTATION_LEAVE}']")
    item = DownwardAPIVolumeFile(path=_LEAVE_NAME, field_ref=field)
    return Volume(name=_LEAVE, downward_api=DownwardAPIVolumeSource(items=[item]))


def leave_mount() -> VolumeMount:
    """Return where that volume is mounted: as a folder, since what is mounted as a single file is never renewed."""
    return VolumeMount(name=_LEAVE, mount_path=_LEAVE_FOLDER, read_only=True)


NAME: Final = "specon-state"
"""Name of the volume in a trial's pod where its author gave none."""


def state_volume(store: object, claim: str | None, volume: object, root: str) -> HeraVolume | None:
    """Return the volume to mount at ``root``, None where the author names none.

    Where a ``store`` of objects keeps what lies there, that is a folder of the pod alone.

    Raises:
        SweepError: Several are given, or ``store`` is no address of one, or ``volume`` is no volume of Hera's, or is
            mounted elsewhere.
    """
    given = {"state": store, "state_claim": claim, "state_volume": volume}
    named = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    if len(named) > 1:
        problem = f"{' and '.join(named)} are given; one of them is enough"
        raise SweepError(problem)
    if store is not None:
        if why_not := why_no_store(store):
            problem = f"state={store!r} {why_not}"
            raise SweepError(problem)
        return EmptyDirVolume(name=NAME, mount_path=root)
    if claim is not None:
        return ExistingVolume(name=NAME, claim_name=claim, mount_path=root)
    if volume is None:
        return None
    if not isinstance(volume, HeraVolume):
        problem = f"state_volume= is a volume of hera.workflows, such as NFSVolume(...), not {volume!r}"
        raise SweepError(problem)
    if volume.mount_path not in {None, root}:
        problem = f"state_volume= is mounted at state_root={root!r}; leave mount_path={volume.mount_path!r} out"
        raise SweepError(problem)
    return replace(volume, mount_path=root)
