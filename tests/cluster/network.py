"""The network of a cluster: one bridge on the host, a cable to each machine, pod subnets routed without NAT."""

import contextlib
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.commands import ClusterError, run
from tests.cluster.layout import BRIDGE, HOST_ADDRESS, POD_RANGE, SERVICE_RANGE, NodeSpec
from tests.cluster.machine import Machine
from tests.cluster.processes import wait_until

CNI_FILE = Path("/etc/cni/net.d/10-specon.conflist")


def add_bridge(nodes: Sequence[NodeSpec]) -> None:
    """Make the bridge, with the host's address on it, and the host's way to every pod."""
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{HOST_ADDRESS}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    for node in nodes:
        run("ip", "route", "add", node.pod_subnet, "via", node.address, "dev", BRIDGE)


def connect(machine: Machine, address: str, nodes: Sequence[NodeSpec]) -> None:
    """Lay a cable from the bridge to a machine and tell it the way to the pods of all nodes."""
    disconnect(address)
    host_end = _host_end(address)
    cable = ("type", "veth", "peer", "name", "eth0", "netns", str(machine.init))
    run("ip", "link", "add", host_end, *cable)
    run("ip", "link", "set", host_end, "master", BRIDGE, "up")
    machine.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    machine.run("ip", "link", "set", "eth0", "up")
    machine.run("ip", "route", "add", "default", "via", HOST_ADDRESS)
    for node in nodes:
        if node.address != address:
            machine.run("ip", "route", "add", node.pod_subnet, "via", node.address)


def disconnect(address: str) -> None:
    """Cut the cable of the machine with this address, if there is one."""
    remove_link(_host_end(address))


def _host_end(address: str) -> str:
    return f"specon-{address.rsplit('.', 1)[1]}"


def cni_configuration(node: NodeSpec) -> str:
    """What the CNI plugins of a node are to do: a bridge of its own, addresses of the node's subnet, no NAT."""
    addresses = {"type": "host-local", "ranges": [[{"subnet": node.pod_subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True}
    plugins = [bridge | {"ipam": addresses}, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "0.4.0", "name": "specon", "plugins": plugins})


def remove_link(name: str) -> None:
    """Take a network device away, if it is there; the kernel may be doing so already, after a machine's end."""
    device = Path("/sys/class/net", name)
    if device.exists():
        with contextlib.suppress(ClusterError):
            run("ip", "link", "delete", name)
        wait_until(lambda: not device.exists(), f"network device {name} is gone", 10)


def remove_bridge() -> None:
    """Take the bridge away; its routes and the cables on it go too."""
    for port in Path("/sys/class/net", BRIDGE, "brif").glob("*"):
        remove_link(port.name)
    remove_link(BRIDGE)


def check_addresses_are_free() -> None:
    """Raise a ClusterError if the host already uses the addresses of the cluster."""
    routes = json.loads(run("ip", "-json", "route"))
    known = [ipaddress.ip_network(route["dst"]) for route in routes if route["dst"] != "default"]
    needed = [
        ipaddress.ip_network(used) for used in (f"{HOST_ADDRESS.rpartition('.')[0]}.0/24", POD_RANGE, SERVICE_RANGE)
    ]
    taken = [str(route) for route in known if any(route.overlaps(used) for used in needed)]
    if taken:
        message = f"the cluster's addresses are in use on this machine: routes to {', '.join(taken)}"
        raise ClusterError(message)
