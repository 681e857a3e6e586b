"""The same scenario gives the same bytes, whatever the process and its hash seed."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from controllers.lab.simulation.run import simulate
from controllers.policies.registry import parse_policy
from tests.controllers.worlds.simulated.workloads import mixed

_ROOT = Path(__file__).parents[4]


def _run_with(hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(_ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "tests.controllers.lab.simulation.test_determinism"],
        env=environment,
        cwd=_ROOT,
        check=True,
        capture_output=True,
    ).stdout


def test_another_process_with_another_hash_seed_gives_the_same_bytes() -> None:
    first, second = _run_with("1"), _run_with("4242")
    assert first == second
    assert b'"moves": 0' in first
    assert json.loads(first)["result"]["moves"] > 0


if __name__ == "__main__":
    run = simulate(mixed(trials=30, cores=[4.0] * 4, seed=7), parse_policy("specon+flowcon"))
    record = {"result": run.result.to_dict(), "timeline": [asdict(event) for event in run.timeline]}
    sys.stdout.write(json.dumps(record))
