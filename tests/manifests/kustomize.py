"""Rendering of manifests: by kubectl where one is at hand."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.building import kubernetes_binary

MANIFESTS = Path(__file__).parents[2] / "manifests"
Json = dict[str, Any]


def kubectl() -> list[str] | None:
    """Return the command that stands for kubectl, None where there is none."""
    found = shutil.which("kubectl")
    if found:
        return [found]
    built = kubernetes_binary()
    return [str(built), "kubectl"] if built.exists() else None


@lru_cache
def render(folder: Path) -> tuple[Json, ...]:
    """Return the objects that ``folder`` becomes."""
    command = kubectl()
    assert command is not None
    done = subprocess.run([*command, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def variation(folder: Path, overlay: str, components: Sequence[str]) -> Path:
    """Write a kustomization of a user's own into ``folder``, which uses the manifests, and return the folder."""

    def beside(path: Path) -> str:
        return os.path.relpath(path, folder.resolve())

    text = {
        "namespace": "team-a",
        "resources": [beside(MANIFESTS / "overlays" / overlay)],
        "components": [beside(MANIFESTS / "components" / name) for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return folder


def of_kind(objects: tuple[Json, ...], *kinds: str) -> list[Json]:
    """Return the objects of these kinds."""
    return [one for one in objects if one["kind"] in kinds]
