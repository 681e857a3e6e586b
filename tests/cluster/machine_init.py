"""The first process of a machine's namespaces: makes its private file tree, then reaps what dies.

Killing it ends every process of the machine at once, like a power cut.

Usage: machine_init PRIVATE_FOLDER HOST_NAME [CPU]; with CPU, that is the only one that the machine sees.
Before all else it writes down who it is, in PRIVATE_FOLDER/init, so that it can be ended even after the process that
started it is gone.
"""

import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.cluster.commands import run
from tests.cluster.processes import identity

# What the machine writes here stays its own; what the host has here, it sees.
LAYERED: Final = ("/etc", "/opt", "/var/lib")
PRIVATE: Final = ("/var/lib/kubelet", "/var/lib/containerd", "/var/log")
# What a kubelet writes to settings of the whole kernel, it writes to these files instead.
KERNEL_SETTINGS: Final = {
    "/proc/sys/vm/overcommit_memory": "1",
    "/proc/sys/vm/panic_on_oom": "0",
    "/proc/sys/kernel/panic": "10",
    "/proc/sys/kernel/panic_on_oops": "1",
    "/proc/sys/kernel/keys/root_maxkeys": "1000000",
    "/proc/sys/kernel/keys/root_maxbytes": "25000000",
}
CPUS: Final = "/sys/devices/system/cpu/online"
NETWORK_SETTINGS: Final = {
    "/proc/sys/net/ipv4/ip_forward": "1",
    "/proc/sys/net/bridge/bridge-nf-call-iptables": "1",
}


def add_layer(folder: Path, target: str) -> None:
    upper, work = folder / "upper", folder / "work"
    for needed in (upper, work):
        needed.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={target},upperdir={upper},workdir={work}", target)


def hide_the_host(private: Path, settings: Mapping[str, str]) -> None:
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    for target in LAYERED:
        add_layer(private / "layers" / target.lstrip("/"), target)
    for target in PRIVATE:
        source = private / target.lstrip("/")
        source.mkdir(parents=True, exist_ok=True)
        Path(target).mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", str(source), target)
    for target, value in settings.items():
        if Path(target).exists():
            stand_in = private / "settings" / target.lstrip("/")
            stand_in.parent.mkdir(parents=True, exist_ok=True)
            stand_in.write_text(f"{value}\n")
            run("mount", "--bind", str(stand_in), target)
    # The kubelet would make cgroups on the host's version 2 hierarchy, where it finds one.
    if Path("/sys/fs/cgroup/unified").is_mount():
        run("umount", "/sys/fs/cgroup/unified")
    run("mount", "--make-rshared", "/")


def set_up_the_network() -> None:
    run("ip", "link", "set", "lo", "up")
    for setting, value in NETWORK_SETTINGS.items():
        if Path(setting).exists():
            Path(setting).write_text(value)


def reap_for_ever() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        signal.sigwait({signal.SIGCHLD})


def main(folder: str, name: str, *cpu: str) -> None:
    private = Path(folder)
    # The file system of processes is still the host's here, and so is the id that it tells.
    (private / "init").write_text(identity(int(Path("/proc/self").readlink().name)))
    run("mount", "-t", "proc", "proc", "/proc")
    socket.sethostname(name)
    hide_the_host(private, KERNEL_SETTINGS | dict(zip((CPUS,), cpu, strict=False)))
    set_up_the_network()
    (private / "ready").touch()
    reap_for_ever()


if __name__ == "__main__":
    main(*sys.argv[1:])
