"""A cloud of the test cluster's own: a server that starts its nodes as new machines and ends them, as it is asked."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.cluster.cluster import Cluster
from tests.cluster.kubelet import Registration
from tests.cluster.layout import HOST_ADDRESS, NodeSpec
from tests.cluster.processes import wait_until

PRICE_OF_A_CORE: Final = 0.05
"""What an hour of a whole core costs, in a currency of no country."""
_FREE_WITHIN_S: Final = 60.0


@dataclass
class StartedMachine:
    """A machine that was asked for. Times are Unix seconds; ``ended_at`` is None while it is there."""

    id: str
    claim: str
    kind: str
    image: str
    node: str
    started_at: float
    ended_at: float | None = None

    @property
    def told(self) -> dict[str, str]:
        """What an autoscaler is told of it."""
        return {"id": self.id, "claim": self.claim, "kind": self.kind, "image": self.image}


@dataclass
class Fleet:
    """The machines of a cluster. None runs at first.

    Attributes:
        boot_s: seconds that a machine takes to boot beyond what it does.
        refusals: how many of the next machines are refused, as of a cloud that has none left.
        machines: every machine ever asked for, oldest first.
    """

    cluster: Cluster
    boot_s: float = 0.0
    refusals: int = 0
    machines: list[StartedMachine] = field(default_factory=list)
    _boots: dict[str, threading.Thread] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def kinds(self) -> list[dict[str, Any]]:
        """What machines can be, with all that pods may not have of them as ``reserved``; prices are per hour."""
        return [_kind(node) for node in {kind_of(node): node for node in self.cluster.nodes}.values()]

    def here(self) -> list[StartedMachine]:
        """The machines that were not ended."""
        return [machine for machine in self.machines if machine.ended_at is None]

    def node_seconds(self, since: int = 0) -> float:
        """Seconds from each machine's order to its end, of the machines from the ``since``-th on."""
        now = time.time()
        return sum((machine.ended_at or now) - machine.started_at for machine in self.machines[since:])

    def start(self, order: Mapping[str, Any]) -> StartedMachine | None:
        """Begin to start a machine, and return it; None where there is none to be had."""
        with self._lock:
            if self.refusals:
                self.refusals -= 1
                return None
            node = self._free(order["kind"])
            if node is None:
                return None
            name, now = f"{node.name}-{len(self.machines)}", time.time()
            made = StartedMachine(name, order["claim"], order["kind"], order["image"], node.name, now)
            registration = Registration(f"fleet:///{made.id}", order["taints"])
            self._boots[made.id] = threading.Thread(target=self._boot, args=(made, registration), daemon=True)
            self._boots[made.id].start()
            self.machines.append(made)
            return made

    def _free(self, kind: str) -> NodeSpec | None:
        """The node of this kind that has been without a machine for longest."""
        taken = {machine.node for machine in self.here()}
        ended = {machine.node: machine.ended_at or 0.0 for machine in self.machines}
        free = [node for node in self.cluster.nodes if node.name not in taken and kind_of(node) == kind]
        return min(free, key=lambda node: ended.get(node.name, 0.0), default=None)

    def _boot(self, machine: StartedMachine, registration: Registration) -> None:
        time.sleep(self.boot_s)
        # A machine that comes under the name of one that just went must not be taken for it.
        wait_until(lambda: not self._is_known(machine.node), f"{machine.node} is forgotten", _FREE_WITHIN_S, 0.3)
        if machine.ended_at is None:
            self.cluster.renew_node(machine.node, registration)

    def _is_known(self, node: str) -> bool:
        return bool(self.cluster.kubectl("get", "node", node, "--output=name", "--ignore-not-found"))

    def find(self, machine_id: str) -> StartedMachine | None:
        """The machine with this id, where it was not ended."""
        return next((machine for machine in self.here() if machine.id == machine_id), None)

    def end(self, machine_id: str) -> bool:
        """End a machine with all on it at once; whether there was one to end."""
        with self._lock:
            machine = self.find(machine_id)
            if machine is None:
                return False
            machine.ended_at = time.time()
            # No other machine is started meanwhile: it could get the same node.
            self._boots[machine.id].join()
            self.cluster.lose_node(machine.node)
            return True


def kind_of(node: NodeSpec) -> str:
    """The name of the kind of machine that a node is."""
    return f"slice-{round(node.cores * 1000)}m"


def _kind(node: NodeSpec) -> dict[str, Any]:
    return {
        "name": kind_of(node),
        "capacity": {"cpu": "1", "memory": str(node.memory), "pods": "110"},
        "reserved": {"cpu": f"{round((1 - node.cores) * 1000)}m", "memory": "100Mi"},
        "price": node.cores * PRICE_OF_A_CORE,
        "capacityType": "on-demand",
    }


@contextmanager
def served(fleet: Fleet, port: int) -> Iterator[str]:
    """Serve the fleet on the cluster's bridge, and yield its address."""
    handler = type("FleetHandler", (_Handler,), {"fleet": fleet})
    server = ThreadingHTTPServer((HOST_ADDRESS, port), handler)
    threading.Thread(target=server.serve_forever, name="fleet", daemon=True).start()
    try:
        yield f"http://{HOST_ADDRESS}:{port}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    fleet: Fleet

    def do_GET(self) -> None:
        if self.path == "/kinds":
            self._answer(self.fleet.kinds())
        elif self.path == "/machines":
            self._answer([machine.told for machine in self.fleet.here()])
        else:
            found = self.fleet.find(self._named())
            self._answer(found and found.told)

    def do_POST(self) -> None:
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        started = self.fleet.start(order)
        self._answer(started and started.told, HTTPStatus.SERVICE_UNAVAILABLE)

    def do_DELETE(self) -> None:
        self._answer({} if self.fleet.end(self._named()) else None)

    def _named(self) -> str:
        return self.path.rpartition("/")[2]

    def _answer(self, told: object, missing: HTTPStatus = HTTPStatus.NOT_FOUND) -> None:
        body = json.dumps(told).encode()
        self.send_response(missing if told is None else HTTPStatus.OK)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing: the machines tell what was asked."""
