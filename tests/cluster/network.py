"""The network of a cluster: one bridge on the host, a cable to each machine, pod subnets routed without NAT."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.commands import ClusterError, run
from tests.cluster.layout import BRIDGE, HOST_ADDRESS, NodeSpec
from tests.cluster.machine import Machine

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
    host_end = f"specon-{address.rsplit('.', 1)[1]}"
    remove_link(host_end)
    cable = ("type", "veth", "peer", "name", "eth0", "netns", str(machine.init))
    run("ip", "link", "add", host_end, *cable)
    run("ip", "link", "set", host_end, "master", BRIDGE, "up")
    machine.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    machine.run("ip", "link", "set", "eth0", "up")
    machine.run("ip", "route", "add", "default", "via", HOST_ADDRESS)
    for node in nodes:
        if node.address != address:
            machine.run("ip", "route", "add", node.pod_subnet, "via", node.address)


def cni_configuration(node: NodeSpec) -> str:
    """What the CNI plugins of a node are to do: a bridge of its own, addresses of the node's subnet, no NAT."""
    addresses = {"type": "host-local", "ranges": [[{"subnet": node.pod_subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True}
    plugins = [bridge | {"ipam": addresses}, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "0.4.0", "name": "specon", "plugins": plugins})


def remove_link(name: str) -> None:
    """Take a network device away, if it is there."""
    if Path("/sys/class/net", name).exists():
        run("ip", "link", "delete", name)


def remove_bridge() -> None:
    """Take the bridge away; its routes and the cables on it go too."""
    for port in Path("/sys/class/net", BRIDGE, "brif").glob("*"):
        remove_link(port.name)
    remove_link(BRIDGE)


def check_addresses_are_free() -> None:
    """Raise a ClusterError if the host already uses the addresses of the cluster."""
    routes = json.loads(run("ip", "-json", "route"))
    taken = [route["dst"] for route in routes if str(route["dst"]).startswith(("10.90.0.", "10.96.", "10.244."))]
    if taken:
        message = f"the cluster's addresses are in use on this machine: routes to {', '.join(taken)}"
        raise ClusterError(message)
