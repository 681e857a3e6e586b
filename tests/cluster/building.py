"""The programs that a cluster runs: built from published Go modules once, kept outside the checkout."""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.commands import run
from tests.cluster.layout import cache_folder
from tests.cluster.other_modules import argo_sources, kubernetes_module, published
from tests.cluster.versions import ARGO, KUBERNETES, PINNED, USED

HERE: Final = Path(__file__).parent
ARGO_MODULE: Final = USED.argo_module
# The Debian package that brings each program.
PACKAGES: Final = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "nft": "nftables",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
CNI_PLUGINS: Final = Path("/usr/lib/cni")


@dataclass(frozen=True)
class Program:
    """A program to build.

    Attributes:
        name: of its file.
        module: the folder here that holds its go.mod.
        package: the Go package that is its main.
        flags: tags, and what the linker is told.
    """

    name: str
    module: str
    package: str
    flags: tuple[str, ...] = ()


def _kubernetes_flags() -> str:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    told = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    return " ".join(("-s -w", *(f"-X {package}.{name}={value}" for name, value in told.items())))


ARGO_FLAGS: Final = (
    "-tags=kubernetes_protomessage_one_more_release",
    f"-ldflags=-s -w -X {ARGO_MODULE}.version={ARGO}",
)
KUBERNETES_PROGRAM: Final = Program("kubernetes", "kubernetes", ".", (f"-ldflags={_kubernetes_flags()}",))
ARGO_PROGRAMS: Final = tuple(
    Program(name, "argo", f"{ARGO_MODULE}/cmd/{name}", ARGO_FLAGS)
    for name in ("workflow-controller", "argoexec", "argo")
)
PAUSE_PROGRAM: Final = Program("pause", "pause", ".", ("-ldflags=-s -w",))
DNS_PROGRAM: Final = Program("coredns", "coredns", ".", ("-ldflags=-s -w",))
KWOK_PROGRAM: Final = Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", ("-ldflags=-s -w",))
KUEUE_PROGRAM: Final = Program("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", ("-ldflags=-s -w",))
"""Built by the tests that need it: it takes minutes, and most have no use for it."""
KARPENTER_PROGRAM: Final = Program("karpenter", "karpenter", ".", ("-ldflags=-s -w",))
"""Few tests need it: they build it, and a cluster comes up without it."""
DRA_PROGRAM: Final = Program(
    "dra-driver", "dra", "sigs.k8s.io/dra-example-driver/cmd/dra-example-kubeletplugin", ("-ldflags=-s -w",)
)
"""Likewise."""
PROGRAMS: Final = (KUBERNETES_PROGRAM, *ARGO_PROGRAMS, PAUSE_PROGRAM, DNS_PROGRAM, KWOK_PROGRAM)


_ARGO_NAMES: Final = frozenset(program.name for program in ARGO_PROGRAMS)


def binary(name: str) -> Path:
    """Where a built program is; each version of Kubernetes and Argo has its own."""
    version = KUBERNETES if name == KUBERNETES_PROGRAM.name else ARGO if name in _ARGO_NAMES else ""
    return cache_folder() / "bin" / "-".join(filter(None, (name, version)))


def kubernetes_binary() -> Path:
    """The program that is every component of Kubernetes, as its first argument says."""
    return binary("kubernetes")


def missing_packages() -> list[str]:
    """The packages that a machine lacks to run a cluster."""
    missing = {package for program, package in PACKAGES.items() if shutil.which(program) is None}
    if not (CNI_PLUGINS / "bridge").exists():
        missing.add("containernetworking-plugins")
    if shutil.which("go") is None and not is_built():
        missing.add("golang")
    return sorted(missing)


def is_current(program: Program) -> bool:
    """Whether the program was built from what its module says now."""
    stamp = _stamp(program)
    return binary(program.name).exists() and stamp.exists() and stamp.read_text() == _key(program)


def is_built() -> bool:
    """Whether every program of a cluster is there and current."""
    return all(map(is_current, PROGRAMS))


def build_all(tell: Callable[[str], None]) -> None:
    """Build what is missing or was built from something else.

    Raises:
        ClusterError: Go is missing, or a build failed.
    """
    for program in PROGRAMS:
        build_program(program, tell)


def build_program(program: Program, tell: Callable[[str], None]) -> None:
    """Build one where it is missing or was built from something else.

    Raises:
        ClusterError: Go is missing, or the build failed.
    """
    if not is_current(program):
        tell(f"building {program.name} (minutes, once)")
        _build(program)


def _build(program: Program) -> None:
    folder, package = HERE / program.module, program.package
    environment = dict(os.environ) | {"CGO_ENABLED": "0"}
    if program in ARGO_PROGRAMS:
        sources = argo_sources(_argo_folder(), ARGO)
        if _is_pinned(program):
            environment["GOWORK"] = str(_workspace(folder, sources))
        else:
            folder, package = sources, f"./cmd/{program.name}"
    elif not _is_pinned(program):
        folder = kubernetes_module(KUBERNETES)
    output = binary(program.name)
    output.parent.mkdir(parents=True, exist_ok=True)
    arguments = ("build", "-trimpath", "-buildvcs=false", *program.flags, "-o", str(output), package)
    run("nice", "go", *arguments, folder=folder, environment=environment, seconds=7200)
    _stamp(program).write_text(_key(program))


def _is_pinned(program: Program) -> bool:
    """Whether the module that stands here is the one of the version that is used."""
    used = {"kubernetes": (KUBERNETES, PINNED.kubernetes), "argo": (ARGO, PINNED.argo)}.get(program.module)
    return used is None or used[0] == used[1]


def _stamp(program: Program) -> Path:
    """Where it stands what a program was built from: beside it, for each version."""
    built = binary(program.name)
    return built.with_name(f"{built.name}.built-from")


def _key(program: Program) -> str:
    content = hashlib.sha256(repr(program).encode())
    files = sorted((HERE / program.module).iterdir())
    for file in files if _is_pinned(program) else (file for file in files if file.suffix == ".go"):
        content.update(file.read_bytes())
    return content.hexdigest()


def _workspace(module: Path, sources: Path) -> Path:
    """Return what makes Go take Argo's sources from a folder."""
    workspace = sources.parent / "argo.work"
    workspace.write_text(f"go 1.26.0\nuse {module}\nreplace {ARGO_MODULE} => {sources}\n")
    return workspace


def argo_manifests() -> Path:
    """What Argo publishes for installing it."""
    folder = cache_folder() / "manifests" / ARGO
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(_argo_folder() / "manifests", partial, copy_function=shutil.copyfile)
        partial.rename(folder)
    return folder


def _argo_folder() -> Path:
    """Where Go keeps what Argo publishes; that of the pinned version by the checksums that stand here."""
    if USED.argo == PINNED.argo:
        return Path(published(ARGO_MODULE, "", HERE / "argo")["Dir"])
    return Path(published(ARGO_MODULE, ARGO)["Dir"])
