"""Modules that build versions of Kubernetes and Argo other than the pinned ones, made from what these publish.

Nothing here holds their checksums: Go's checksum database does.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Final

from tests.cluster.commands import ClusterError, run
from tests.cluster.layout import cache_folder

HERE: Final = Path(__file__).parent
_STAGED: Final = re.compile(r"^\s*(k8s\.io/\S+) => \./staging", re.MULTILINE)
_UNVERSIONED: Final = re.compile(r"^\s*(k8s\.io/[a-z-]+) v0\.0\.0\b", re.MULTILINE)
_GO: Final = re.compile(r"^go (\S+)", re.MULTILINE)
_DEBUG: Final = re.compile(r"^godebug default=\S+", re.MULTILINE)
# What the components need that the module of Kubernetes itself does not name everywhere.
_BESIDES: Final = frozenset({"k8s.io/kubectl", "k8s.io/code-generator", "k8s.io/sample-apiserver"})
_SIGNALS: Final = ("workflow/executor/osspecific", "workflow/executor/os-specific")


def published(module: str, version: str, by: Path = Path("/")) -> dict[str, Any]:
    """Return what Go tells of a published module: its folder, its go.mod.

    Args:
        module: Its path.
        version: Empty for the one that the module in the folder ``by`` requires.
        by: Where Go is asked: a module there has checksums to compare with.

    Raises:
        ClusterError: nobody serves it.
    """
    environment = dict(os.environ) | {"GOWORK": "off"}
    named = f"{module}@{version}" if version else module
    arguments = ("mod", "download", "-json", named)
    found: dict[str, Any] = json.loads(run("go", *arguments, folder=by, environment=environment, seconds=900))
    return found


def kubernetes_module(version: str) -> Path:
    """Make a module that builds all components of a Kubernetes, as ``kubernetes/`` does of the pinned one.

    Raises:
        ClusterError: it is not served, or Go cannot put it together.
    """
    folder = cache_folder() / "source" / f"kubernetes-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text(_kubernetes_go_mod(version))
    shutil.copyfile(HERE / "kubernetes/main.go", folder / "main.go")
    environment = dict(os.environ) | {"GOWORK": "off", "GOFLAGS": "-mod=mod"}
    run("go", "mod", "tidy", folder=folder, environment=environment, seconds=1800)
    return folder


def _kubernetes_go_mod(version: str) -> str:
    given = Path(published("k8s.io/kubernetes", version)["GoMod"]).read_text()
    staged = set(_STAGED.findall(given) or _UNVERSIONED.findall(given)) | _BESIDES
    go, debug, own = _GO.search(given), _DEBUG.search(given), f"v0{version[2:]}"
    if go is None:
        message = f"the go.mod of Kubernetes {version} names no version of Go"
        raise ClusterError(message)
    lines = [
        "module hera-specon.io/tests/kubernetes",
        f"go {go[1]}",
        debug[0] if debug else "",
        f"require k8s.io/kubernetes {version}",
        "require k8s.io/kubectl v0.0.0",
        f"require k8s.io/component-base {own}",
        *(f"replace {name} => {name} {own}" for name in sorted(staged)),
    ]
    return "".join(f"{line}\n" for line in lines)


def argo_sources(found: Path, version: str) -> Path:
    """Return a copy of the sources of an Argo that were ``found``, made whole.

    As they are published, they lack signal_linux.go, whose system calls are those of its sibling for Darwin, and the
    generated user interface that the server embeds.

    Raises:
        ClusterError: they are not as those of the versions that are known.
    """
    whole = cache_folder() / "source" / f"argo-{version}"
    shutil.rmtree(whole, ignore_errors=True)
    shutil.copytree(found, whole, copy_function=shutil.copyfile)
    for folder in (whole, *(path for path in whole.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    signals = next((whole / place for place in _SIGNALS if (whole / place).is_dir()), None)
    if signals is None:
        message = f"Argo {version} has its signals elsewhere than in {' or '.join(_SIGNALS)}"
        raise ClusterError(message)
    shutil.copyfile(signals / "signal_darwin.go", signals / "signal_linux.go")
    page = whole / "ui/dist/app/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>The user interface is not part of this build.</p>\n")
    return whole
