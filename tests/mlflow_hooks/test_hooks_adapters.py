"""With each library that an adapter is for, a training that moves is the training that never did."""

import importlib.util
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.mlflow_hooks.hook_jobs import RunJob

pytestmark = [pytest.mark.adapter, pytest.mark.slow]
# Other numbers of threads give other rounding errors.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Case:
    """A job, what it needs, the metrics it logs with the steps of each, and where it is interrupted."""

    job: str
    library: str
    expected: dict[str, list[int]]
    stop: int
    kill: int
    more: dict[str, str] = field(default_factory=dict)


EACH = list(range(24))
CASES = {
    "lightning": Case("lightning", "lightning", {"loss": list(range(8)), "train_loss": list(range(8))}, 3, 5),
    "lightning-by-batches": Case("lightning", "lightning", {"loss": list(range(8))}, 3, 5, {"JOB_LENGTH": "batches"}),
    "lightning-beside": Case(
        "lightning", "lightning", {"loss": list(range(8)), "train_loss": list(range(8))}, 3, 5, {"JOB_BESIDE": "always"}
    ),
    "huggingface-beside": Case(
        "huggingface", "transformers", {"loss": EACH, "eval_loss": [5, 11, 17, 23]}, 9, 17, {"JOB_BESIDE": "always"}
    ),
    "huggingface": Case("huggingface", "transformers", {"loss": EACH, "eval_loss": [5, 11, 17, 23]}, 9, 17),
    "xgboost": Case("xgboost", "xgboost", {"valid-rmse": EACH}, 9, 17),
    "lightgbm": Case("lightgbm", "lightgbm", {"valid_0-l2": EACH}, 9, 17),
    "sklearn-network": Case("sklearn", "sklearn", {"loss": EACH}, 9, 17, {"JOB_MODEL": "network"}),
    "sklearn-linear": Case("sklearn", "sklearn", {"loss": EACH}, 9, 17, {"JOB_MODEL": "linear"}),
    "sklearn-boosting": Case("sklearn", "sklearn", {"loss": EACH}, 9, 17, {"JOB_MODEL": "boosting"}),
}


def need(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")


def history(folder: Path, key: str) -> list[tuple[int, float]]:
    lines = map(json.loads, (folder / "points.jsonl").read_text().splitlines())
    return [(point["step"], point["value"]) for point in lines if point["key"] == key]


@pytest.mark.parametrize("name", CASES)
def test_a_training_that_moved_and_was_killed_has_the_history_of_one_that_was_not_and_is_not_trained_again(
    run_job: RunJob, state_root: Path, name: str
) -> None:
    case = CASES[name]
    need(case.library)
    more = {**ONE_THREAD, **case.more}
    whole = run_job(case.job, "whole", **more)
    assert whole.code == 0, whole.err
    stopped = run_job(case.job, "moved", JOB_SIGNAL=f"{case.stop}:SIGTERM", **more)
    assert stopped.code == 75, stopped.err
    assert run_job(case.job, "moved", JOB_SIGNAL=f"{case.kill}:SIGKILL", **more).code == -9
    moved = run_job(case.job, "moved", **more)
    assert moved.code == 0, moved.err

    assert case.stop <= int(moved.out["start"]) <= case.kill  # saving may not take more than its share of the time
    for key, steps in case.expected.items():
        expected = history(state_root / "whole", key)
        found = history(state_root / "moved", key)
        assert [step for step, _ in expected] == steps
        assert [step for step, _ in found] == steps
        assert [value for _, value in found] == pytest.approx([value for _, value in expected], rel=1e-5)
    assert "missing in the history" not in moved.err

    again = run_job(case.job, "moved", **more)
    assert again.code == 0, again.err
    assert int(again.out["start"]) == len(next(iter(case.expected.values())))
    for key, steps in case.expected.items():
        assert [step for step, _ in history(state_root / "moved", key)] == steps


def test_lightnings_own_answer_to_sigterm_is_no_success(run_job: RunJob, state_root: Path) -> None:
    need("lightning")
    stopped = run_job("lightning", "s.a", JOB_CALLBACK="own", JOB_SIGNAL="3:SIGTERM", **ONE_THREAD)
    assert stopped.code == 75, stopped.err
    assert not (state_root / "s.a/ended.json").exists()


def test_a_lightning_trial_with_nothing_to_lose_leaves_in_the_middle_of_an_epoch(
    run_job: RunJob, state_root: Path
) -> None:
    need("lightning")
    assert run_job("lightning", "s.a", JOB_SIGNAL="0:SIGTERM", **ONE_THREAD).code == 75
    assert history(state_root / "s.a", "loss") == []
    ended = run_job("lightning", "s.a", **ONE_THREAD)
    assert (ended.code, ended.out["start"]) == (0, "0")
    assert [step for step, _ in history(state_root / "s.a", "loss")] == list(range(8))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lightning", "pass ckpt_path=callback.ckpt_path"),
        ("huggingface", "pass resume_from_checkpoint=callback.checkpoint"),
        ("xgboost", "pass xgb_model=callback.model"),
        ("lightgbm", "pass init_model=callback.model"),
    ],
)
def test_a_script_that_forgets_to_go_on_where_the_trial_was_is_told_what_to_pass(
    run_job: RunJob, name: str, told: str
) -> None:
    case = CASES[name]
    need(case.library)
    assert run_job(case.job, "s.a", JOB_SIGNAL=f"{case.stop}:SIGTERM", **ONE_THREAD).code == 75
    ended = run_job(case.job, "s.a", JOB_FORGET="1", **ONE_THREAD)
    assert ended.code == 1
    assert told in ended.err
