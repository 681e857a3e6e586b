"""Where trials write in a cluster: each pod has a file system of its own, but for the volumes that pods share. Pure."""

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from controllers.core import labels
from hera_specon.manifest import Manifest, program, sweep_of, trial_templates
from mlflow_hooks.contract import ENV_TRIAL_FOLDER

_OF_ONE_POD: Final = frozenset({"emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected", "image"})


def folder_problems(template: Manifest) -> Iterator[str]:
    """Yield why a trial would write into a folder that does not exist in its pod."""
    main = program(template)
    variables = main.get("env") or []
    if any(variable.get("name") == ENV_TRIAL_FOLDER for variable in variables):
        return
    # Kubernetes leaves a reference to a variable that it does not know as it stands.
    used = json.dumps([main.get("command"), main.get("args"), [variable.get("value") for variable in variables]])
    if f"$({ENV_TRIAL_FOLDER})" in used:
        yield (
            f"uses $({ENV_TRIAL_FOLDER}), which only `specon run` sets; name a folder of the pod for it: "
            f"env={{'{ENV_TRIAL_FOLDER}': '/tmp'}}"
        )


def folder_warnings(manifest: Manifest) -> list[str]:
    """Return a line for each sweep whose trials run on a volume that other pods may have too."""
    return [
        (
            f"the trials of {sweep_of(template)} run in {folder}, on volume {volume!r}, which they share: each "
            "overwrites files of the others that have the same names (docs/how-to/keep-trials-files-apart.md)"
            + ("; own_folder= means nothing in a cluster" if _wants_own(template) else "")
        )
        for template in trial_templates(manifest)
        for folder, volume in _shared_folder(template, manifest.get("spec") or {})
    ]


def _wants_own(template: Manifest) -> bool:
    return labels.ANNOTATION_OWN_FOLDER in ((template.get("metadata") or {}).get("annotations") or {})


def _shared_folder(template: Manifest, spec: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the working folder of a trial and the volume that it is on, if other pods may have that too."""
    main = program(template)
    folder = str(main.get("workingDir") or "")
    mounts = [
        mount
        for mount in main.get("volumeMounts") or []
        if folder and PurePosixPath(folder).is_relative_to(str(mount.get("mountPath") or "//"))
    ]
    for mount in sorted(mounts, key=lambda mount: -len(str(mount["mountPath"])))[:1]:
        volumes = [*(template.get("volumes") or []), *(spec.get("volumes") or [])]
        volume: Manifest = next((item for item in volumes if item.get("name") == mount.get("name")), {})
        of_the_pod = _OF_ONE_POD & volume.keys() or mount.get("subPathExpr") or mount.get("readOnly")
        if not of_the_pod:
            yield folder, str(mount.get("name"))
