"""Several workers that train one trial: the model of one worker, whatever their number, and an end that all share."""

import importlib.util
from pathlib import Path

import pytest

from tests.mlflow_hooks.gang_runs import GangTrial

pytestmark = [
    pytest.mark.pytorch,
    # Not imported here: the trainings are processes of their own.
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra"),
]
STEPS = 30
SCALED = [(1, "9"), (3, "18"), (2, "never")]
"""Workers of each attempt, and the step in which one of them is asked to leave."""


def weights(trial: GangTrial) -> dict[str, list[float]]:
    import torch  # noqa: PLC0415 - only where it is installed

    return {name: value.flatten().tolist() for name, value in torch.load(trial.folder / "model.pt").items()}


def scaled(root: Path, **more: str) -> tuple[GangTrial, GangTrial]:
    """Train a trial on one worker, and another on one, three and two."""
    whole, moved = GangTrial(root, trial_id="s.whole", more=more), GangTrial(root, trial_id="s.moved", more=more)
    assert whole.attempt(1).codes == [0]
    for workers, step in SCALED:
        ended = moved.attempt(workers, JOB_SIGNAL=f"{step}:SIGTERM", JOB_RANK=str(workers - 1))
        assert ended.codes == [0 if step == "never" else 75] * workers, ended.err
        assert len({out.get("weights") for out in ended.out}) == 1
    return whole, moved


def test_a_trial_that_grows_and_shrinks_is_the_one_that_did_not(state_root: Path) -> None:
    whole, moved = scaled(state_root)
    expected, found = whole.history("loss"), moved.history("loss")
    assert [step for step, _ in found] == list(range(STEPS))
    assert [value for _, value in found] == pytest.approx([value for _, value in expected], rel=1e-4)
    assert [value for _, value in moved.history("workers")] == [1.0] * 10 + [3.0] * 9 + [2.0] * 11
    for name, values in weights(whole).items():
        assert weights(moved)[name] == pytest.approx(values, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("layer", ["Identity", "Dropout"])
def test_an_exact_trial_is_the_same_to_the_last_bit_on_any_number_of_workers(state_root: Path, layer: str) -> None:
    whole, moved = scaled(state_root, JOB_EXACT="1", JOB_LAYER=layer)
    assert moved.history("loss") == whole.history("loss")
    assert weights(moved) == weights(whole)


def test_rank_0_tells_what_all_workers_have_used_and_they_meet_at_its_address(state_root: Path) -> None:
    trial = GangTrial(state_root)
    ended = trial.attempt(3, SPECON_POD_IP="127.0.0.1", JOB_STEPS="200")
    assert ended.codes == [0, 0, 0]
    used = [float(out["cpu"]) for out in ended.out]
    assert used[0] + 0.5 * sum(used[1:]) < trial.history("specon.cpu_seconds")[-1][1] <= sum(used)


@pytest.mark.parametrize("rank", ["0", "2"])
def test_all_workers_leave_after_the_same_step_whichever_was_asked(state_root: Path, rank: str) -> None:
    trial = GangTrial(state_root)
    assert trial.attempt(3, JOB_SIGNAL="11:SIGTERM", JOB_RANK=rank, JOB_EVERY_S="3600").codes == [75, 75, 75]
    assert {path.read_text() for path in trial.folder.glob("*-[012]")} == {"11"}
    assert [path.name for path in (trial.folder / "checkpoints").iterdir()] == ["step-00000012"]
    assert not (trial.folder / "ended.json").exists()


@pytest.mark.parametrize("rank", ["0", "1"])
def test_workers_that_lose_one_end_soon_and_the_gang_goes_on_from_its_checkpoint(state_root: Path, rank: str) -> None:
    trial = GangTrial(state_root)
    assert trial.attempt(3, JOB_SIGNAL="7:SIGTERM", JOB_EVERY_S="3600").codes == [75, 75, 75]
    expected = [76, 76, 76]
    expected[int(rank)] = -9
    ended = trial.attempt(3, JOB_SIGNAL="15:SIGKILL", JOB_RANK=rank, JOB_EVERY_S="3600")
    assert ended.codes == expected
    assert "another worker has gone" in "".join(ended.err)
    assert [path.name for path in (trial.folder / "checkpoints").iterdir()] == ["step-00000008"]
    assert trial.attempt(2).codes == [0, 0]
    assert [step for step, _ in trial.history("loss")] == list(range(STEPS))


def test_a_worker_that_is_silent_counts_as_lost(state_root: Path) -> None:
    trial = GangTrial(state_root, within_s=10)
    ended = trial.attempt(2, JOB_SIGNAL="3:SIGSTOP", JOB_RANK="1", JOB_SILENCE_S="2")
    assert ended.codes == [76, -9]  # the second by the test itself


def test_whoever_waits_for_a_worker_in_vain_says_for_which_and_tries_again(state_root: Path) -> None:
    ended = GangTrial(state_root, max_workers=4, absent=(2,)).attempt(4, JOB_MEET_S="1")
    assert ended.codes == [75, 75, 75]
    assert "waited 1 s for worker 2 of 0 to 3: was it started" in "".join(ended.err)


def test_workers_that_never_join_are_told_how(state_root: Path) -> None:
    ended = GangTrial(state_root).attempt(2, JOB_ALONE="1")
    assert ended.codes == [1, 1]
    assert all("call data_parallel(t, ...)" in err for err in ended.err)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"JOB_LAYER": "BatchNorm1d"}, "the layer '1' is a BatchNorm1d, whose result depends on all rows of a batch"),
        ({"JOB_LAYER": "BatchNorm1d", "JOB_EXACT": "1"}, "the layer '1' is a BatchNorm1d"),
        ({"JOB_LAYER": "Dropout"}, "the losses draw random numbers, as Dropout does"),
        ({"JOB_REDUCTION": "mean"}, "losses() returned shape () for 25 rows: it must return the loss of each row"),
    ],
)
def test_what_cannot_be_split_is_refused_before_the_trial_has_grown(
    state_root: Path, given: dict[str, str], why: str
) -> None:
    ended = GangTrial(state_root).attempt(1, **given)
    assert ended.codes == [1]
    assert why in ended.err[0]


@pytest.mark.parametrize("layer", ["BatchNorm1d", "Dropout"])
def test_what_cannot_be_split_trains_where_there_is_never_more_than_one_worker(state_root: Path, layer: str) -> None:
    assert GangTrial(state_root, max_workers=1).attempt(1, JOB_LAYER=layer).codes == [0]
