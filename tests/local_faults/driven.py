"""``specon`` as a user starts it, with a policy that does whatever it may and faults that strike from within.

``python -m tests.local_faults.driven CASE STRUCK ARGUMENT...``: the file of the case, a folder that holds a file for
each fault that has struck, and the arguments of ``specon``.
"""

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from controllers.core.actions import Migrate, Place, Stop, Suspend
from controllers.local_run.services import GRACE_S
from controllers.policies.registry import POLICIES
from tests.local_faults.case import Case, Fault
from tests.local_faults.restless import Restless

_HEARTBEAT_S: Final = 0.25
_FUNCTIONS: Final = {
    "ledger save": ("controllers.worlds.local.jobs", "LedgerFile.save"),
    "sweep's run": ("controllers.local_run.opened_mlflow", "open_sweep"),
    "trial's run": ("mlflow_hooks.delivery", "open_run"),
    "delivery": ("controllers.local_run.sweep", "LocalSweep.deliver"),
    "result": ("controllers.local_run.sweep", "write_result"),
    "closing": ("controllers.local_run.closing", "close_sweep"),
}
_ACTIONS: Final = {"move": Migrate, "suspension": Suspend, "stop": Stop, "place": Place}


def main() -> None:
    """Run the command."""
    case, struck = Case.read(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    POLICIES[Restless.name] = Restless
    strikes = [Strike(fault, struck / str(number)) for number, fault in enumerate(case.faults)]
    for point, (module, name) in _FUNCTIONS.items():
        _watch(module, name, [one for one in strikes if one.fault.point == point])
    for point, kind in _ACTIONS.items():
        mine = [one for one in strikes if one.fault.point == point]
        _watch("controllers.worlds.local.world", "LocalWorld.apply", mine, kind)
    # So that a short sweep is looked at often enough for something to go wrong.
    vars(importlib.import_module("controllers.local_run.sweep"))["_HEARTBEAT_S"] = _HEARTBEAT_S
    for one in strikes:
        if not one.fault.point:
            threading.Thread(target=one.strike_in_time, daemon=True).start()
    from hera_specon.cli.main import main as specon  # noqa: PLC0415 - it takes a second

    specon(sys.argv[3:])


class Strike:
    """A fault that has not struck yet; ``mark`` tells commands after this one that it has."""

    def __init__(self, fault: Fault, mark: Path) -> None:
        self.fault = fault
        self._mark = mark
        self._visits = 0

    def visit(self, *, done: bool) -> None:
        """Take note that the driver is about to do what the fault waits for, or has done it."""
        if self.fault.done == done:
            self._visits += 1
            if self._visits == self.fault.nth:
                self._strike()

    def strike_in_time(self) -> None:
        """Strike when it is time to."""
        time.sleep(self.fault.after_s)
        self._strike()

    def _strike(self) -> None:
        if not self._mark.exists():
            self._mark.touch()
            _STRIKES[self.fault.what](self.fault.size)


def _watch(module: str, path: str, strikes: list[Strike], kind: type | None = None) -> None:
    """Have ``strikes`` see each call of a function, or each of those whose last argument is of a ``kind``."""
    if not strikes:
        return
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    original: Callable[..., Any] = getattr(owner, name)

    def seen(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
        watched = kind is None or isinstance(args[-1], kind)
        for one in strikes if watched else ():
            one.visit(done=False)
        came_to = original(*args, **named)
        for one in strikes if watched else ():
            one.visit(done=True)
        return came_to

    setattr(owner, name, seen)


def _kill_driver(_: float) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _interrupt_driver(_: float) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _hang_up_driver(_: float) -> None:
    os.kill(os.getpid(), signal.SIGHUP)


def _kill_fork_server(_: float) -> None:
    for keeper in _keepers():
        for server in keeper.children():
            server.kill()


def _kill_keeper(_: float) -> None:
    for keeper in _keepers():
        keeper.kill()


def _kill_mlflow(_: float) -> None:
    for server in _servers():
        server.kill()


def _freeze_mlflow(seconds: float) -> None:
    frozen = list(_servers())
    for server in frozen:
        server.suspend()
    threading.Timer(seconds, _thaw, (frozen,)).start()


def _thaw(frozen: list[psutil.Process]) -> None:
    for server in frozen:
        with suppress(psutil.Error):
            server.resume()


def _kill_trial(_: float) -> None:
    for keeper in _keepers():
        for attempt in [child for server in keeper.children() for child in server.children()][:1]:
            attempt.kill()


def _turn_clock(seconds: float) -> None:
    real = time.time
    time.time = lambda: real() + seconds


def _fill_disk(seconds: float) -> None:
    filler = Path(".specon/filler")
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"\0" * 65_536)
            file.flush()
    # Another program makes room, whatever becomes of this one.
    if os.fork() == 0:
        os.setsid()
        time.sleep(seconds)
        filler.unlink(missing_ok=True)
        os._exit(0)


_STRIKES: Final[dict[str, Callable[[float], None]]] = {
    "kill driver": _kill_driver,
    "interrupt driver": _interrupt_driver,
    "hang up driver": _hang_up_driver,
    "kill fork server": _kill_fork_server,
    "kill keeper": _kill_keeper,
    "kill mlflow": _kill_mlflow,
    "freeze mlflow": _freeze_mlflow,
    "kill trial": _kill_trial,
    "turn clock": _turn_clock,
    "fill disk": _fill_disk,
}


def _keepers(*, of_attempts: bool = True) -> Iterator[psutil.Process]:
    """Yield the keeper of this driver's attempts, or those of its servers, which have another grace period."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            command = " ".join(child.cmdline())
            if "fork_server" in command and of_attempts == (f'"grace_s": {GRACE_S}' in command):
                yield child


def _servers() -> Iterator[psutil.Process]:
    for keeper in _keepers(of_attempts=False):
        for child in keeper.children():
            yield from child.children(recursive=True)


if __name__ == "__main__":
    main()
