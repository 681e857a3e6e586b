"""The process that serves the page of a run beside it, at the lowest priority, while somebody looks.

It reads one line of JSON from its standard input: ``token``, ``state_dir``, and ``socket``, the number of the one that
listens. Once its standard input ends, the run has ended, or was killed.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

IDLE_S: Final = 60.0
"""It ends when nobody has looked for so long; the next who looks begins another."""
LINGER_S: Final = 7.0
"""For so long it still shows the end of a run, where somebody looked within that time before it."""
_LOOK_S: Final = 0.2
_LOWEST: Final = 19


def main() -> None:
    """Serve until the run ends, or nobody looks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which then ends this
    with suppress(OSError):
        os.nice(_LOWEST)
    from hera_specon.live.local import LocalShelf  # noqa: PLC0415 - it takes a second: at the lowest priority
    from hera_specon.live.serving import PageServer  # noqa: PLC0415

    told = json.loads(sys.stdin.readline())
    shelf = LocalShelf(Path(told["state_dir"]))
    server = PageServer(shelf, f"Runs in {told['state_dir']}", told["token"])
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            if server.unseen_s > IDLE_S:
                server.stop()
                return
        shelf.expire()
        until = time.monotonic() + LINGER_S
        while time.monotonic() < until and server.unseen_s < LINGER_S:
            time.sleep(_LOOK_S)
        server.stop()

    for task in (wait_for_the_end, watch):
        threading.Thread(target=task, daemon=True).start()
    server.serve(socket.socket(fileno=int(told["socket"])))
    # A thread that still makes a page would hold it up.
    os._exit(0)
