"""Rendering of manifests: by kubectl where one is at hand."""

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

MANIFESTS = Path(__file__).parents[2] / "manifests"
_MULTI_CALL = Path.home() / ".cache" / "hera-specon" / "bin" / "kubernetes"
Json = dict[str, Any]


def kubectl() -> list[str] | None:
    """Return the command that stands for kubectl, None where there is none."""
    found = shutil.which("kubectl")
    if found:
        return [found]
    return [str(_MULTI_CALL), "kubectl"] if _MULTI_CALL.exists() else None


@lru_cache
def render(folder: Path) -> tuple[Json, ...]:
    """Return the objects that ``folder`` becomes."""
    command = kubectl()
    assert command is not None
    done = subprocess.run([*command, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(objects: tuple[Json, ...], *kinds: str) -> list[Json]:
    """Return the objects of these kinds."""
    return [one for one in objects if one["kind"] in kinds]
