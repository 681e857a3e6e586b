"""TensorFlow's workers: they make the model of one worker, and end together."""

import importlib.util
from pathlib import Path

import pytest

from tests.mlflow_hooks.gang_runs import GangTrial

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.slow,
    # Not imported here: the trainings are processes of their own.
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs the tensorflow extra"),
]


def test_a_trial_that_grows_and_shrinks_is_the_one_that_did_not(state_root: Path) -> None:
    whole = GangTrial(state_root, "tensorflow_gang", "s.whole")
    moved = GangTrial(state_root, "tensorflow_gang", "s.moved")
    assert whole.attempt(1).codes == [0]
    for workers, step in [(1, "9"), (3, "18"), (2, "never")]:
        ended = moved.attempt(workers, JOB_SIGNAL=f"{step}:SIGTERM", JOB_RANK=str(workers - 1))
        assert ended.codes == [0 if step == "never" else 75] * workers, "\n".join(ended.err)
    assert [step for step, _ in moved.history("loss")] == list(range(30))
    expected = [value for _, value in whole.history("loss")]
    assert [value for _, value in moved.history("loss")] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rank", ["0", "1"])
def test_workers_that_lose_one_end_soon(state_root: Path, rank: str) -> None:
    trial = GangTrial(state_root, "tensorflow_gang")
    expected = [76, 76]
    expected[int(rank)] = -9
    assert trial.attempt(2, JOB_SIGNAL="9:SIGKILL", JOB_RANK=rank).codes == expected
