import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from controllers.worlds.local.processes import Exit, Launcher, ProcessSpec
from controllers.worlds.local.processes.warmth import Warmth

PATIENCE_S = 60

Run = Callable[..., Exit]
Spec = Callable[..., ProcessSpec]


def environment() -> dict[str, str]:
    """Return that of the tests, less what pytest changes within a test: attempts in another one are not forked."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    made = Launcher([Warmth(environment())], grace_s=1.0, log=tmp_path / "server.log")
    yield made
    made.close(0.0)


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    """Describe an attempt that logs to <key>.log."""

    def make(
        *command: str, key: str = "trial", env: Mapping[str, str] | None = None, join: tuple[str, ...] = ()
    ) -> ProcessSpec:
        whole = {**environment(), **(env or {})}
        return ProcessSpec(key, command, whole, cwd=tmp_path, log=tmp_path / f"{key}.log", join=join)

    return make


@pytest.fixture
def wait_exits(launcher: Launcher) -> Callable[[int], list[Exit]]:
    """Wait for so many exits, asleep on the launcher's descriptor."""

    def wait(count: int) -> list[Exit]:
        exits: list[Exit] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(exits) < count and (left := deadline - time.monotonic()) > 0:
            launcher.wait(left)
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
