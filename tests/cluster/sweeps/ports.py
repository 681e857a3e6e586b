"""Ports that are free now."""

import socket
from contextlib import ExitStack


def free_ports(number: int) -> list[int]:
    """Return the first of ``number`` ports in a row that nobody listens on, and those after it."""
    while True:
        with ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind(("", 0))
            ports = [first.getsockname()[1] + more for more in range(number)]
            try:
                for port in ports[1:]:
                    stack.enter_context(socket.socket()).bind(("", port))
            except (OSError, OverflowError):
                continue
            return ports
