"""A trial that is killed again and again while it saves and uploads, each time on another machine.

``STORE_KILLS=100`` kills it so often in each store. It prints its seed, which ``STORE_SEED`` takes back.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from mlflow_hooks.store_address import open_store
from tests.mlflow_hooks.hook_jobs import StartJob
from tests.mlflow_hooks.more_object_servers import MORE
from tests.mlflow_hooks.test_trainings_in_stores import on, points

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
_KILLS: Final = int(os.environ.get("STORE_KILLS", "4"))
_ENOUGH: Final = 50
"""So many kills: some must hit an upload, and some a save."""
_MOST_TRAINED_S: Final = 1.5
STORES: Final = ["folder", "s3", "s3 without conditions", "mlflow", *MORE]


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_a_trial_that_is_killed_again_and_again_loses_and_doubles_no_step(
    start_job: StartJob, tmp_path: Path, store: dict[str, str]
) -> None:
    seed = int(os.environ.get("STORE_SEED") or int.from_bytes(os.urandom(3)))
    chance = random.Random(seed)  # noqa: S311 - a test's chance is no secret
    sys.stdout.write(f"seed {seed}\n")
    starts, hit, kill = [0], Counter[str](), 0
    # On a busy machine a few kills may all come before the first upload is through.
    while kill < _KILLS or not starts[-1]:
        job = start_job("hasty", "s.a", **on(f"m{kill}", tmp_path), **store, JOB_STEPS="1000000")
        starts.append(_begun_at(job))
        time.sleep(chance.uniform(0, _MOST_TRAINED_S * max(1.0, kill / _KILLS)))
        job.kill()
        job.wait()
        hit.update(_what_was_under_way(tmp_path / f"m{kill}" / "s.a" / "checkpoints"))
        kill += 1
    sys.stdout.write(f"{kill} kills: {hit['upload']} in an upload, {hit['save']} in a save; at step {starts[-1]}\n")
    if _KILLS >= _ENOUGH:
        assert min(hit["upload"], hit["save"]) > 0
    # Each goes on at least where the one before it did: nothing that a head named is lost.
    assert starts == sorted(starts)
    last = starts[-1] + 1000
    job = start_job("hasty", "s.a", **on("last", tmp_path), **store, JOB_STEPS=str(last))
    out, err = job.communicate(timeout=300)
    assert job.returncode == 0, err
    assert int(out.split()[1]) >= starts[-1]
    assert points(tmp_path / "last" / "s.a") == [(n, float(n * (n + 1) // 2)) for n in range(last)]
    if store["SPECON_STATE_STORE"] != "mlflow":
        _check_that_no_object_is_left(store)


def _what_was_under_way(checkpoints: Path) -> list[str]:
    """Return what a killed trial was doing, as its folder tells."""
    left = {"upload": ".uploading-*", "save": ".writing-*"}
    return [what for what, pattern in left.items() if any(checkpoints.glob(pattern))]


def _begun_at(job: subprocess.Popen[str]) -> int:
    assert job.stdout is not None
    line = job.stdout.readline()
    assert line.startswith("start "), job.communicate()[1]
    return int(line.split()[1])


def _check_that_no_object_is_left(store: dict[str, str]) -> None:
    """Check that two checkpoints of four files each, the journal's pieces and the head are all that is there."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.items():
            patch.setenv(name, value)
        keys = [found.key for found in open_store(store["SPECON_STATE_STORE"]).list("s.a/")]
    files = [key for key in keys if "/step-" in key]
    assert len(files) == 2 * 4, files
    assert {key.split("/")[1] for key in keys if key not in files} <= {"journal", "head.json"}
