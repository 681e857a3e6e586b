"""A trial that is killed again and again while a thread writes its checkpoints ends as one that never was.

``BESIDE_KILLS=100`` kills it so often. It prints its seed, which ``BESIDE_SEED`` takes back.
"""

import importlib.util
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.mlflow_hooks.hook_jobs import RunJob, StartJob
from tests.mlflow_hooks.test_trainings_in_stores import points

pytestmark = [
    pytest.mark.pytorch,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    # Not imported here: the trainings are processes of their own.
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra"),
]
_KILLS: Final = int(os.environ.get("BESIDE_KILLS", "6"))
_MOST_TRAINED_S: Final = 1.0
_MORE_STEPS: Final = 100
_TRAINS: Final = {"OMP_NUM_THREADS": "1", "SPECON_FLUSH_S": "60", "JOB_BESIDE": "always"}


def test_a_trial_that_is_killed_while_it_writes_beside_the_training_ends_bit_for_bit(
    start_job: StartJob, run_job: RunJob, state_root: Path
) -> None:
    seed = int(os.environ.get("BESIDE_SEED") or int.from_bytes(os.urandom(3)))
    chance = random.Random(seed)  # noqa: S311 - a test's chance is no secret
    sys.stdout.write(f"seed {seed}\n")
    starts, hit = [0], 0
    for _ in range(_KILLS):
        job = start_job("large", "s.killed", JOB_STEPS="1000000", **_TRAINS)
        starts.append(_begun_at(job))
        time.sleep(chance.uniform(0, _MOST_TRAINED_S))
        job.kill()
        job.wait()
        hit += any((state_root / "s.killed" / "checkpoints").glob(".writing-*"))
    sys.stdout.write(f"{_KILLS} kills, {hit} of them while a checkpoint was written; at step {starts[-1]}\n")
    assert hit > 0, "no kill came at the right time"
    # What was there once stays there.
    assert starts == sorted(starts)
    assert starts[-1] > 0
    steps = str(starts[-1] + _MORE_STEPS)
    killed = run_job("large", "s.killed", JOB_STEPS=steps, **_TRAINS)
    whole = run_job("large", "s.whole", JOB_STEPS=steps, **_TRAINS | {"JOB_BESIDE": ""})
    assert (killed.code, whole.code) == (0, 0), killed.err + whole.err
    assert int(killed.out["start"]) >= starts[-1]
    assert killed.out["weights"] == whole.out["weights"]
    for key in ("loss", "best"):
        expected = points(state_root / "s.whole", key)
        assert [step for step, _ in expected] == list(range(int(steps)))
        assert points(state_root / "s.killed", key) == expected


def _begun_at(job: subprocess.Popen[str]) -> int:
    assert job.stdout is not None
    line = job.stdout.readline()
    assert line.startswith("start "), job.communicate()[1]
    return int(line.split()[1])
