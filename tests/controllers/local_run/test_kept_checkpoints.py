"""At a sweep's end on one machine, checkpoints stay as ``keep=`` says, and so do those that a trial may go on from."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from controllers.core import labels
from controllers.core.model import Phase
from controllers.core.results import RunResult, TrialResult
from controllers.local_run.kept_checkpoints import drop_unkept
from controllers.worlds.local.jobs import JobLedger, LocalJob
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.folder_objects import FolderObjects
from mlflow_hooks.head import Head, StoredCheckpoint, StoredFile

UID = "demo-1-00"
PHASES = {"t0": Phase.SUCCEEDED, "t1": Phase.SUCCEEDED, "t2": Phase.FAILED, "t3": Phase.STOPPED}
"""Of these t1 is the best; t3, which was ended early, is behind it."""
LOSSES = {"t0": 0.5, "t1": 0.1, "t2": None, "t3": 0.3}
STEPS = (8, 12)


class Over:
    """A run that is over: four trials with two checkpoints each, in folders and, where it names one, in a store."""

    def __init__(self, folder: Path, keep: str, store: str = "", losses: dict[str, float | None] | None = None) -> None:
        self.folder, self.store = folder, store
        notes = {labels.ANNOTATION_KEEP: keep} if keep else {}
        told = LOSSES if losses is None else losses
        jobs, trials = {}, []
        for name, phase in PHASES.items():
            trial = f"{UID}.s.{name}"
            env = {contract.ENV_TRIAL_ID: trial, **({contract.ENV_STATE_STORE: store} if store else {})}
            step = PodStep(name, "t", (), env=env, labels={labels.LABEL_SWEEP: "s"}, annotations=notes)
            jobs[name] = LocalJob(step, 0.0, 1.0, phase=phase, attempt=1)
            succeeded = phase is not Phase.FAILED
            trials.append(TrialResult(f"s.{name}", 0.0, 1.0, "n", 0, 1, told[name], succeeded=succeeded, sweep="s"))
            for number in STEPS:
                checkpoint = folder / "state" / trial / "checkpoints" / f"step-{number:08d}"
                checkpoint.mkdir(parents=True)
                (checkpoint / "weights").write_text(name)
            (folder / "state" / trial / "owner").write_text("mine")
        self.ledger, self.result = JobLedger(jobs), RunResult("default", tuple(trials))

    def put(self, attempt: str = "mine") -> FolderObjects:
        """Put the same checkpoints into the store, as ``attempt`` left them."""
        objects = FolderObjects(self.store)
        for name in PHASES:
            kept = []
            for number in reversed(STEPS):
                key = f"step-{number:08d}/{attempt}-1/0"
                objects.upload(f"{UID}.s.{name}/{key}", self.folder / "state" / f"{UID}.s.{name}" / "owner")
                kept.append(StoredCheckpoint(number, {"weights": StoredFile(key, 4, "0")}))
            head = Head(attempt, 1, tuple(kept), tail="points", notes={"ended.json": "{}"})
            objects.write(f"{UID}.s.{name}/head.json", head.encode(), None)
        return objects

    def drop(self) -> list[str]:
        return drop_unkept(self.folder, self.ledger, self.result, UID)

    @property
    def left(self) -> dict[str, list[int]]:
        """Steps of the checkpoints in folders that are left, by trial."""
        found: dict[str, list[int]] = {name: [] for name in PHASES}
        for path in sorted(self.folder.glob("state/*/checkpoints/*")):
            found[path.parts[-3].rpartition(".")[2]].append(int(path.name.removeprefix("step-")))
        return found


def left_in(objects: FolderObjects) -> dict[str, list[int]]:
    """Return the steps of the checkpoints that heads name, by trial, once no other object is there."""
    found, named = {}, set()
    for name in PHASES:
        trial = f"{UID}.s.{name}"
        stored = objects.read(f"{trial}/head.json")
        assert stored is not None
        head = Head.decode(stored[0])
        assert head.tail == "points"
        found[name] = sorted(checkpoint.step for checkpoint in head.checkpoints)
        named |= {f"{trial}/{file.key}" for one in head.checkpoints for file in one.files.values()}
    assert {found.key for found in objects.list("") if "/step-" in found.key} == named
    return found


WHAT_STAYS: Sequence[tuple[str, dict[str, list[int]]]] = [
    ("", {"t0": [8, 12], "t1": [8, 12], "t2": [8, 12], "t3": [8, 12]}),
    ("all", {"t0": [8, 12], "t1": [8, 12], "t2": [8, 12], "t3": [8, 12]}),
    ("who knows", {"t0": [8, 12], "t1": [8, 12], "t2": [8, 12], "t3": [8, 12]}),
    ("newest", {"t0": [12], "t1": [12], "t2": [12], "t3": [12]}),
    ("best", {"t0": [], "t1": [12], "t2": [12], "t3": [12]}),
    ("none", {"t0": [], "t1": [], "t2": [12], "t3": [12]}),
]


@pytest.mark.parametrize(("keep", "left"), WHAT_STAYS)
def test_what_stays_is_what_was_asked_for_and_what_may_go_on(
    keep: str, left: dict[str, list[int]], tmp_path: Path
) -> None:
    over = Over(tmp_path / "run", keep)
    lines = over.drop()
    assert over.left == left
    assert len(lines) == (keep in {"newest", "best", "none"})
    assert over.drop() == []
    assert over.left == left


@pytest.mark.parametrize(("keep", "left"), WHAT_STAYS)
def test_the_same_stays_in_a_store_and_its_points_do(keep: str, left: dict[str, list[int]], tmp_path: Path) -> None:
    over = Over(tmp_path / "run", keep, f"file://{tmp_path}/store")
    objects = over.put()
    over.drop()
    assert (over.left, left_in(objects)) == (left, left)
    assert over.drop() == []


def test_one_line_says_what_went(tmp_path: Path) -> None:
    assert Over(tmp_path / "run", "best").drop() == [
        "keep='best': checkpoints of 4 trials are removed; those of 2 that failed or were ended early stay"
    ]


def test_a_trial_that_goes_on_elsewhere_keeps_what_the_store_has(tmp_path: Path) -> None:
    over = Over(tmp_path / "run", "none", f"file://{tmp_path}/store")
    objects = over.put(attempt="of another machine")
    over.drop()
    assert set(map(tuple, left_in(objects).values())) == {STEPS}


def test_where_no_trial_is_known_to_be_the_best_the_newest_of_each_stays(tmp_path: Path) -> None:
    over = Over(tmp_path / "run", "best", losses=dict.fromkeys(LOSSES))
    over.drop()
    assert set(map(tuple, over.left.values())) == {(12,)}


def test_a_store_that_cannot_be_read_is_told_of_and_ends_nothing(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/store"
    (tmp_path / "store" / f"{UID}.s.t0" / "head.json").mkdir(parents=True)
    over = Over(tmp_path / "run", "none", address)
    first, second = over.drop()
    assert "are removed" in first
    assert f"checkpoints in {address} stay: " in second
    assert f"specon clean --state {address}" in second
