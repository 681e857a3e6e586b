"""What a GPU adds to a PyTorch training comes back after a move: its random numbers, its scaler, its compiled model.

``make test-gpu`` runs this on a machine with a GPU. Without one the same trainings run on the CPU, which shows that the
tests are sound and says nothing of CUDA; what needs CUDA itself is skipped.
"""

import importlib.util
from pathlib import Path

import pytest

from tests.mlflow_hooks.hook_jobs import RunJob
from tests.mlflow_hooks.test_trainings_in_stores import points

pytestmark = [
    pytest.mark.pytorch,
    pytest.mark.gpu,
    pytest.mark.slow,
    # Not imported here: the trainings are processes of their own.
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra"),
]
STEPS = 60
# However fast the device, a checkpoint is there before the training is killed.
WHOLE = {"OMP_NUM_THREADS": "1", "SPECON_FLUSH_S": "60", "JOB_EVERY_S": "0"}


@pytest.mark.parametrize("first", ["23:SIGTERM", "31:SIGKILL"])
@pytest.mark.parametrize(
    "more",
    [{}, {"JOB_COMPILE": "1"}, {"JOB_BESIDE": "always"}],
    ids=["eager", "compiled", "written beside"],
)
def test_a_training_in_mixed_precision_goes_on_bit_for_bit(
    run_job: RunJob, state_root: Path, first: str, more: dict[str, str]
) -> None:
    more = {**WHOLE, **more}
    whole = run_job("gpu", "s.whole", **more)
    assert whole.code == 0, whole.err
    broken_off = run_job("gpu", "s.moved", JOB_SIGNAL=first, **more)
    assert broken_off.code == (75 if "TERM" in first else -9), broken_off.err
    moved = run_job("gpu", "s.moved", **more)
    assert moved.code == 0, moved.err
    assert 0 < int(moved.out["start"]) <= int(first.partition(":")[0]) + 1
    assert moved.out["weights"] == whole.out["weights"]
    for key in ("loss", "scale"):
        expected = points(state_root / "s.whole", key)
        assert [step for step, _ in expected] == list(range(STEPS))
        assert points(state_root / "s.moved", key) == expected
    if whole.out["device"] == "cuda":
        assert len({value for _, value in points(state_root / "s.whole", "scale")}) > 1, "the scaler had nothing to do"


def test_a_training_that_began_without_a_gpu_goes_on_with_one_and_the_other_way_round(run_job: RunJob) -> None:
    without = {"CUDA_VISIBLE_DEVICES": ""}
    for first, then, name in ((without, {}, "s.up"), ({}, without, "s.down")):
        left = run_job("gpu", name, JOB_SIGNAL="20:SIGTERM", **WHOLE, **first)
        assert left.code == 75, left.err
        ended = run_job("gpu", name, **WHOLE, **then)
        assert (ended.code, ended.out["start"]) == (0, "21"), ended.err
