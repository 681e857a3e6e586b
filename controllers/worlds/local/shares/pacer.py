"""Shares for an ordinary user: a helper process stops and continues the trials' processes."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Any, Final

from controllers.core.own_program import own_command, own_environment
from controllers.worlds.local.processes import proctree
from controllers.worlds.local.shares.base import SharesError, SharesNameError, checked_cpu, checked_name
from mlflow_hooks.foreign_json import parsed

_PROCESS: Final = "controllers.worlds.local.shares.pacer_process"


@dataclass(slots=True)
class _Entry:
    """A trial as the controller knows it, so that a new helper can be told."""

    node: str
    cpu: float
    pid: int | None = None
    born: int | None = None
    used: float = 0.0

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its tree, but not to another process that has the number by now."""
        if self.pid is not None and self.born is not None and proctree.start_time(self.pid) == self.born:
            proctree.signal_tree(self.pid, number)


class Pacer:
    """``Shares`` by SIGSTOP and SIGCONT."""

    description = (
        "pacer: an ordinary user's way; trials are stopped and continued several times a second, "
        "shares hold over seconds, not moments, and a process that leaves its trial's tree is not held"
    )

    def __init__(self) -> None:
        self._nodes: dict[str, float] = {}
        self._trials: dict[str, _Entry] = {}
        self._node_used: dict[str, float] = {}
        self._helper = _start_helper()

    def add_node(self, node: str, cpu: float) -> None:
        """See ``Shares``."""
        if node in self._nodes:
            msg = f"node {node!r} is there already"
            raise SharesNameError(msg)
        self._nodes[checked_name(node)] = checked_cpu(cpu)
        self._ask(do="node", node=node, cpu=cpu)

    def add(self, key: str, node: str, cpu: float) -> tuple[str, ...]:
        """See ``Shares``: no files, the pid comes by ``adopt``."""
        if key in self._trials or node not in self._nodes:
            msg = f"{key!r} has a share already or {node!r} is no node"
            raise SharesNameError(msg)
        self._trials[checked_name(key)] = _Entry(node, checked_cpu(cpu))
        return ()

    limits_memory = False

    def limit_memory(self, key: str, most: float) -> None:
        """See ``Shares``: an ordinary user cannot."""

    def adopt(self, key: str, pid: int) -> None:
        """See ``Shares``."""
        entry = self._entry(key)
        entry.pid, entry.born = pid, proctree.start_time(pid)
        self._ask(do="adopt", key=key, node=entry.node, cpu=entry.cpu, pid=pid)

    def resize(self, key: str, cpu: float) -> None:
        """See ``Shares``."""
        entry = self._entry(key)
        entry.cpu = checked_cpu(cpu)
        if entry.pid is not None:
            self._ask(do="resize", key=key, cpu=cpu)

    def used(self, key: str) -> float:
        """See ``Shares``."""
        entry = self._entry(key)
        if entry.pid is not None:
            entry.used = max(entry.used, self._ask(do="used", key=key))
        return entry.used

    def memory(self, key: str) -> float:
        """See ``Shares``."""
        pid = self._entry(key).pid
        return 0.0 if pid is None else proctree.memory(proctree.tree(pid))

    def memory_kills(self, key: str) -> int:
        """See ``Shares``: nobody counts them."""
        self._entry(key)
        return 0

    def node_used(self, node: str) -> float:
        """See ``Shares``."""
        if node not in self._nodes:
            msg = f"unknown node {node!r}"
            raise SharesNameError(msg)
        before = self._node_used.get(node, 0.0)
        self._node_used[node] = max(before, self._ask(do="node_used", node=node))
        return self._node_used[node]

    def kill(self, key: str) -> None:
        """See ``Shares``."""
        self._entry(key).signal(signal.SIGKILL)

    def remove(self, key: str) -> None:
        """See ``Shares``."""
        self.kill(key)
        if self._trials[key].pid is not None:
            self._ask(do="remove", key=key)
        del self._trials[key]

    def close(self) -> None:
        """See ``Shares``."""
        for key in list(self._trials):
            self.kill(key)
        self._trials.clear()
        self._nodes.clear()
        _end(self._helper)

    def _entry(self, key: str) -> _Entry:
        if key not in self._trials:
            msg = f"{key!r} has no share"
            raise SharesNameError(msg)
        return self._trials[key]

    def _ask(self, **request: Any) -> float:  # noqa: ANN401 - JSON
        try:
            return _exchange(self._helper, request)
        except (OSError, ValueError):
            self._replace_helper()
            return 0.0 if request["do"] in {"node", "adopt"} else _exchange(self._helper, request)

    def _replace_helper(self) -> None:
        """Let go what a helper that died has left stopped, and tell a new one everything."""
        _end(self._helper)
        for entry in self._trials.values():
            # A helper that was killed could not do it, and nobody else would.
            entry.signal(signal.SIGCONT)
        self._helper = _start_helper()
        for node, cpu in self._nodes.items():
            _exchange(self._helper, {"do": "node", "node": node, "cpu": cpu})
        for key, entry in self._trials.items():
            if entry.pid is not None:
                told = {"do": "adopt", "key": key, "node": entry.node, "cpu": entry.cpu, "pid": entry.pid}
                _exchange(self._helper, told)


def _start_helper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        own_command(_PROCESS),
        env=own_environment(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
    )


def _exchange(helper: subprocess.Popen[bytes], request: dict[str, Any]) -> float:
    if helper.stdin is None or helper.stdout is None:
        msg = "the pacer's helper has no pipes"
        raise SharesError(msg)
    helper.stdin.write(json.dumps(request).encode() + b"\n")
    return float(parsed(helper.stdout.readline()))


def _end(helper: subprocess.Popen[bytes]) -> None:
    """End the helper, which lets every process go on, and close its pipes."""
    with helper:
        if helper.stdin is not None:
            helper.stdin.close()
        helper.wait()
