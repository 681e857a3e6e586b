"""The real helm: what this machine has, else built from its published module once, outside the checkout.

``python -m tests.manifests.helm`` prints where it is, and builds it where it has to.
"""

import fcntl
import json
import os
import shutil
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

import yaml

from tests.cluster.commands import ClusterError, run
from tests.cluster.layout import cache_folder
from tests.manifests.kustomize import MANIFESTS, Json

VERSION: Final = "v3.22.0"
MODULE: Final = "helm.sh/helm/v3"
_KUBERNETES: Final = {"Major": "1", "Minor": "37"}
"""The Kubernetes whose libraries it is built with: what it takes a cluster for where it asks none."""


def find_helm() -> str:
    """Return the path of helm; several processes may ask at once, and one of them builds it.

    Raises:
        ClusterError: there is none, and Go is missing or cannot build it.
    """
    installed = shutil.which("helm")
    if installed:
        return installed
    built = cache_folder() / "bin" / f"helm-{VERSION}"
    built.parent.mkdir(parents=True, exist_ok=True)
    with built.with_name(f"{built.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _build(built)
    return str(built)


def _build(file: Path) -> None:
    variables = {f"{MODULE}/internal/version.version": VERSION}
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        variables |= {f"{MODULE}/{package}.k8sVersion{part}": number for part, number in _KUBERNETES.items()}
    told = " ".join(("-s -w", *(f"-X {name}={value}" for name, value in variables.items())))
    partial = file.with_name(f"{file.name}.partial")
    environment = dict(os.environ) | {"CGO_ENABLED": "0", "GOBIN": str(partial)}
    program = f"{MODULE}/cmd/helm@{VERSION}"
    run("nice", "go", "install", "-trimpath", f"-ldflags={told}", program, environment=environment, seconds=3600)
    (partial / "helm").rename(file)
    partial.rmdir()


@lru_cache
def _rendered(helm: str, chart: Path, namespace: str, values: str) -> tuple[Json, ...]:
    arguments = ("template", "specon", chart, "--namespace", namespace, "--values", "-")
    return tuple(yaml.safe_load_all(run(helm, *arguments, text_input=values)))


def template(helm: str, values: Json, namespace: str = "hera-specon", chart: Path = MANIFESTS) -> tuple[Json, ...]:
    """Return the objects that a release in ``namespace`` with these values has.

    Raises:
        ClusterError: helm refuses the values, with its reasons.
    """
    return _rendered(helm, chart, namespace, json.dumps(values, sort_keys=True))


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_helm()}\n")
    except ClusterError as error:
        sys.exit(str(error))
