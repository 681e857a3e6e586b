"""The programs that a cluster runs: built from published Go modules once, kept outside the checkout."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.commands import ClusterError, run
from tests.cluster.layout import cache_folder
from tests.cluster.versions import ARGO, KUBERNETES

HERE: Final = Path(__file__).parent
ARGO_MODULE: Final = "github.com/argoproj/argo-workflows/v4"
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
PROGRAMS: Final = (KUBERNETES_PROGRAM, *ARGO_PROGRAMS, PAUSE_PROGRAM, DNS_PROGRAM, KWOK_PROGRAM)


def binary(name: str) -> Path:
    """Where a built program is."""
    return cache_folder() / "bin" / name


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
        if not is_current(program):
            tell(f"building {program.name} (minutes, once)")
            _build(program)


def _build(program: Program) -> None:
    folder = HERE / program.module
    environment = dict(os.environ) | {"CGO_ENABLED": "0"}
    if program.module == "argo":
        environment |= _argo_workspace(folder)
    output = binary(program.name)
    output.parent.mkdir(parents=True, exist_ok=True)
    arguments = ("build", "-trimpath", "-buildvcs=false", *program.flags, "-o", str(output), program.package)
    run("nice", "go", *arguments, folder=folder, environment=environment, seconds=3600)
    _stamp(program).write_text(_key(program))


def _stamp(program: Program) -> Path:
    return binary(f"{program.name}.built-from")


def _key(program: Program) -> str:
    content = hashlib.sha256(repr(program).encode())
    for file in sorted((HERE / program.module).iterdir()):
        content.update(file.read_bytes())
    return content.hexdigest()


def _argo_workspace(module: Path) -> Mapping[str, str]:
    """Make the published module whole, and return what makes Go use it.

    It lacks workflow/executor/osspecific/signal_linux.go, whose system calls are those of its sibling for Darwin, and
    the generated user interface that the server embeds.
    """
    published = Path(_module_folder(module))
    whole = cache_folder() / "source" / f"argo-{ARGO}"
    shutil.rmtree(whole, ignore_errors=True)
    shutil.copytree(published, whole, copy_function=shutil.copyfile)
    for folder in (whole, *(path for path in whole.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    signals = whole / "workflow/executor/osspecific"
    shutil.copyfile(signals / "signal_darwin.go", signals / "signal_linux.go")
    page = whole / "ui/dist/app/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>The user interface is not part of this build.</p>\n")
    workspace = whole.parent / "argo.work"
    workspace.write_text(f"go 1.26.0\nuse {module}\nreplace {ARGO_MODULE} => {whole}\n")
    return {"GOWORK": str(workspace)}


def argo_manifests() -> Path:
    """What Argo publishes for installing it."""
    folder = cache_folder() / "manifests" / ARGO
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(Path(_module_folder(HERE / "argo")) / "manifests", partial, copy_function=shutil.copyfile)
        partial.rename(folder)
    return folder


def _module_folder(module: Path) -> str:
    environment = dict(os.environ) | {"GOWORK": "off"}
    run("go", "mod", "download", ARGO_MODULE, folder=module, environment=environment, seconds=900)
    folder = run("go", "list", "-m", "-f", "{{.Dir}}", ARGO_MODULE, folder=module, environment=environment).strip()
    if not folder:
        message = f"go did not say where it keeps {ARGO_MODULE}"
        raise ClusterError(message)
    return folder
