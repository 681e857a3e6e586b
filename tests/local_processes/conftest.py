import os
import select
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from controllers.worlds.local.processes import Exit, Launcher, ProcessSpec

PATIENCE_S = 60

Run = Callable[..., Exit]
Spec = Callable[..., ProcessSpec]


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    made = Launcher((), grace_s=1.0, log=tmp_path / "server.log")
    yield made
    made.close(0.0)


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """Describe an attempt that logs to <key>.log."""

    def make(
        *command: str, key: str = "trial", env: Mapping[str, str] | None = None, join: tuple[str, ...] = ()
    ) -> ProcessSpec:
        whole = {**os.environ, **(env or {})}
        return ProcessSpec(key, command, whole, cwd=tmp_path, log=tmp_path / f"{key}.log", join=join)

    return make


@pytest.fixture
def wait_exits(launcher: Launcher) -> Callable[[int], list[Exit]]:
    """Wait for so many exits, asleep on the launcher's descriptor."""

    def wait(count: int) -> list[Exit]:
        exits: list[Exit] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(exits) < count and (left := deadline - time.monotonic()) > 0:
            select.select([launcher], [], [], left)
            exits += launcher.exits()
        return exits

    return wait


@pytest.fixture
def run(launcher: Launcher, spec: Spec, wait_exits: Callable[[int], list[Exit]]) -> Run:
    """Run a command to its end."""

    def run_one(*command: str, **options: Mapping[str, str]) -> Exit:
        launcher.start(spec(*command, **options))
        return wait_exits(1)[0]

    return run_one
