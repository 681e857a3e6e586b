"""containerd in a machine, and the images that it holds."""

import re
import signal
from pathlib import Path
from typing import Final

from tests.cluster.layout import NodeSpec
from tests.cluster.machine import Machine
from tests.cluster.network import CNI_FILE, cni_configuration
from tests.cluster.processes import wait_until
from tests.cluster.versions import CONTAINER_SANDBOX_IMAGE

STOP: Final = signal.SIGTERM
SOCKET: Final = Path("/run/containerd/containerd.sock")
# restrict_oom_score_adj is for machines where the capability to lower it is missing.
CONFIGURATION: Final = f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{CONTAINER_SANDBOX_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""
CTR: Final = ("ctr", "--namespace", "k8s.io", "images")


def write_inside(machine: Machine, path: Path, text: str) -> None:
    """Write a file where only the machine sees it."""
    inside = Path(f"/proc/{machine.init}/root") / path.relative_to("/")
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.write_text(text)


def start(machine: Machine, node: NodeSpec | None = None) -> None:
    """Start containerd, for a node with its pod network, and wait until it answers."""
    write_inside(machine, Path("/etc/containerd/config.toml"), CONFIGURATION)
    if node is not None:
        write_inside(machine, CNI_FILE, cni_configuration(node))
    machine.start("containerd", ["containerd", "--config", "/etc/containerd/config.toml"])
    socket = Path(f"/proc/{machine.init}/root") / SOCKET.relative_to("/")
    wait_until(socket.exists, f"containerd of {machine.name} answers (see {machine.logs})", 30)


def import_archive(machine: Machine, archive: Path) -> list[str]:
    """Import an image archive (docker's or OCI's) and return the names of the images in it."""
    told = machine.run(*CTR, "import", archive, seconds=600)
    return re.findall(r"^unpacking (\S+) ", told, re.MULTILINE)


def forget_unnamed_images(machine: Machine) -> None:
    """Remove, now, the images whose name has since been given to others, which kept only their digest."""
    known = machine.run(*CTR, "list", "--quiet").split()
    machine.run(*CTR, "remove", "--sync", *(image for image in known if image.startswith("sha256:")), seconds=300)


def pin(machine: Machine, image: str) -> None:
    """Keep the kubelet from ever removing an image."""
    machine.run(*CTR, "label", image, "io.cri-containerd.pinned=pinned")
