"""One case from its first command to the one that ends it, as a user would who gives the same command again."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from tests.local_faults.case import Case
from tests.local_faults.nursery import Nursery

ROOT: Final = Path(__file__).resolve().parents[2]
_JOB: Final = Path(__file__).with_name("hash_chain_job.py")
_ENOUGH_COMMANDS: Final = 12
_WITHIN_S: Final = 150.0
_PRINTED: Final = 20 * 2**20
"""Bytes that an attempt of a program prints which floods its log."""
_PRINTED_ON_A_SMALL_DISK: Final = 2**18
_AWAY_S: Final = 45.0
"""Seconds that may pass from the end of a driver to that of the last process that it started."""

SWEEP: Final = """
from hera.workflows import Resources, Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="chains-", entrypoint="chains") as w:
    Sweep(
        name="chains",
        image="python:3.11",
        command=["python", {job!r}, "--witness={witness}", "--step-ms={step_ms}", *{manner!r}],
        space={{"variant": choice(*range({variants})), "steps": choice(*{steps!r})}},
        search="grid",
        objective=minimize("loss"),
        resources=Resources(cpu_request="50m", memory_request="16Mi"),
        retries=6,
        grace=10,
    )
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A ``specon run`` that ended, and what it printed."""

    code: int
    output: str


@dataclass
class Bench:
    """A user's folder in which a case runs."""

    folder: Path
    case: Case
    nursery: Nursery
    commands: list[Command] = field(default_factory=list)

    @property
    def witness(self) -> Path:
        """What the trials themselves saw."""
        return self.folder / "witness"

    @property
    def database(self) -> Path:
        """MLflow's own database, where the run has a server of its own."""
        return self.folder / ".specon" / "mlflow" / "mlflow.db"

    @property
    def specon(self) -> Path:
        """What specon keeps."""
        return self.folder / ".specon"

    def run(self, tracking_uri: str) -> None:
        """Give the same command until it ends well and all faults have struck that can.

        Args:
            tracking_uri: of an MLflow that is there already; empty where the run starts its own.
        """
        self._write()
        while not (self.commands and self.commands[-1].code == 0):
            assert len(self.commands) < _ENOUGH_COMMANDS, f"no end in sight\n{self.told()}"
            self.commands.append(self._command(tracking_uri))
            # The owner looks away for a moment; what the driver has left must end by itself.
            self._wait_for_the_rest()

    def told(self) -> str:
        """Return what the commands printed, newest last."""
        return "\n".join(f"-- exit code {one.code}\n{one.output[-3000:]}" for one in self.commands)

    def processes(self) -> list[psutil.Process]:
        """Return what still runs of the case: by its command line, its working folder or its environment."""
        own = os.getpid()
        return [one for one in psutil.process_iter() if one.pid != own and _belongs(one, str(self.folder))]

    def _write(self) -> None:
        case = self.case
        for folder in (self.witness, self.folder / "struck"):
            folder.mkdir()
        (self.folder / "case.json").write_text(case.text())
        most_bytes = _PRINTED_ON_A_SMALL_DISK if case.room_mib else _PRINTED
        sweep = SWEEP.format(
            job=str(_JOB),
            witness=self.witness,
            step_ms=case.step_ms,
            variants=case.variants,
            steps=case.steps,
            manner=[f"--manner={case.manner}", f"--most-bytes={most_bytes}"] if case.manner else [],
        )
        (self.folder / "sweep.py").write_text(sweep)

    def _command(self, tracking_uri: str) -> Command:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "SPECON_"))}
        env |= {"PYTHONPATH": str(ROOT)} | ({"MLFLOW_TRACKING_URI": tracking_uri} if tracking_uri else {})
        policy = f"restless:seed={self.case.seed},actions={self.case.actions}"
        specon = ["run", "sweep.py", "--plain", "--nodes", "2", "--cpus-per-node", "0.4", "--json", "result.json"]
        arguments = ["case.json", "struck", *specon, "--policy", policy]
        output = self.folder / "output"
        pid = self.nursery.start(self.folder, arguments, env, output)
        hangs = threading.Timer(_WITHIN_S, os.kill, (pid, signal.SIGABRT))
        hangs.start()
        code = self.nursery.wait()
        hangs.cancel()
        return Command(code, output.read_text())

    def _wait_for_the_rest(self) -> None:
        deadline = time.monotonic() + _AWAY_S
        while left := self.processes():
            assert time.monotonic() < deadline, (
                f"these outlive their driver: {[_shown(one) for one in left]}\n{self.told()}"
            )
            time.sleep(0.1)


@contextmanager
def bench(folder: Path, case: Case, nursery: Nursery) -> Iterator[Bench]:
    """Give a user's folder for ``case``, with a small file system of its own where the case wants one."""
    made = Bench(folder, case, nursery)
    mounted = case.room_mib > 0
    if mounted:
        made.specon.mkdir()
        size = f"size={case.room_mib}m"
        subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", size, "specon-small", str(made.specon)], check=True)
    try:
        yield made
    finally:
        for process in made.processes():
            with suppress(psutil.Error):
                process.kill()
        if mounted:
            subprocess.run(["/bin/umount", "--lazy", str(made.specon)], check=False)
        shutil.rmtree(made.specon, ignore_errors=True)


def can_mount(folder: Path) -> bool:
    """Return whether this user may mount a file system, which takes root."""
    tried = subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "specon-try", str(folder)], check=False)
    if tried.returncode == 0:
        subprocess.run(["/bin/umount", str(folder)], check=True)
    return tried.returncode == 0


def _belongs(process: psutil.Process, folder: str) -> bool:
    try:
        return process.cwd().startswith(folder) or any(folder in word for word in process.cmdline())
    except psutil.Error:
        return False


def _shown(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.pid} {process.status()} {' '.join(process.cmdline())[:120]}"
    return str(process.pid)
