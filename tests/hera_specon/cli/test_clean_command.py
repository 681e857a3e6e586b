"""``specon clean`` shows what may go, removes it when told to, and nothing else."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from controllers.local_run.run_folder import read_result
from hera_specon.cli.main import main
from hera_specon.records.run_folder import parts_of
from mlflow_hooks.folder_objects import FolderObjects
from mlflow_hooks.head import Head
from mlflow_hooks.state_folder import Ending, Identity, write_ending, write_identity
from tests.hera_specon.report.example_run import write_example_run

DAY = 86_400.0


def cleaned(state_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["clean", "--state-dir", str(state_dir), *words])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Make a run that is over, whose trials have two checkpoints each."""
    folder = write_example_run(tmp_path)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "finished": True}))
    for part in parts_of(folder):
        result = read_result(part)
        assert result is not None
        for trial in result.trials:
            for step in (8, 12):
                checkpoint = part / "state" / f"uid-00.{trial.id}" / "checkpoints" / f"step-{step:08d}"
                checkpoint.mkdir(parents=True)
                (checkpoint / "weights").write_bytes(b"x" * 1000)
            (part / "state" / f"uid-00.{trial.id}" / "points.jsonl").write_text("kept")
    return folder


def checkpoints(folder: Path) -> list[tuple[str, str]]:
    return sorted((path.parts[-3], path.name) for path in folder.glob("*/state/*/checkpoints/*"))


def test_nothing_is_removed_without_being_told(run: Path, tmp_path: Path) -> None:
    before = checkpoints(run)
    shown = cleaned(tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "demo-1" in shown.output
    assert "46.0 kB would be free. Nothing was removed" in shown.output
    assert checkpoints(run) == before


def test_the_newest_checkpoint_of_the_best_trial_stays(run: Path, tmp_path: Path) -> None:
    assert cleaned(tmp_path, "--yes").exit_code == 0
    best = []
    for part in parts_of(run):
        result = read_result(part)
        assert result is not None
        best += [f"uid-00.{ranked[0].id}" for ranked in result.ranking().values()]
    assert checkpoints(run) == sorted((trial, "step-00000012") for trial in best)
    assert len(list(run.glob("*/state/*/points.jsonl"))) == 24


@pytest.mark.parametrize(("keep", "left"), [("newest", {"step-00000012"}), ("none", set())])
def test_the_newest_of_each_or_none_may_stay(run: Path, tmp_path: Path, keep: str, left: set[str]) -> None:
    assert cleaned(tmp_path, "--keep", keep, "--yes", "demo-1").exit_code == 0
    assert {name for _, name in checkpoints(run)} == left
    assert "There is nothing to remove." in cleaned(tmp_path, "--keep", keep).output


def test_a_run_that_is_not_over_keeps_all(run: Path, tmp_path: Path) -> None:
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**about, "finished": False}))
    before = checkpoints(run)
    assert "There is nothing to remove." in cleaned(tmp_path, "--keep", "none", "--yes").output
    assert checkpoints(run) == before


def test_only_what_is_old_enough_goes(run: Path, tmp_path: Path) -> None:
    assert "nothing to remove" in cleaned(tmp_path, "--older-than", "30d", "--yes").output
    for path in run.glob("*/state/*/checkpoints/*"):
        os.utime(path, (time.time() - 31 * DAY,) * 2)
    assert cleaned(tmp_path, "--older-than", "30d", "--yes").exit_code == 0
    assert len(checkpoints(run)) == 2


def test_figures_for_scripts_say_what_was_found(run: Path, tmp_path: Path) -> None:
    assert run.is_dir()
    told = json.loads(cleaned(tmp_path, "--json", "-", "--keep", "none").stdout)
    assert told["removed"] is False
    assert [(one["policy"], one["trials"], one["bytes"]) for one in told["found"]] == [
        ("default", 12, 24_000),
        ("specon+flowcon", 12, 24_000),
    ]


@pytest.mark.parametrize("age", ["30", "month", "-1d", "1y"])
def test_what_is_no_age_is_refused(run: Path, tmp_path: Path, age: str) -> None:
    assert run.is_dir()
    refused = cleaned(tmp_path, "--older-than", age)
    assert refused.exit_code == 2
    assert f"'{age}' is no span of time; write it like 12h, 30d or 4w." in " ".join(refused.output.split())


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., FolderObjects]:
    """Return what puts a trial into a store."""
    store = FolderObjects(f"file://{tmp_path}/store")
    (tmp_path / "file").write_bytes(b"12345")

    def of(trial: str, *, ended: bool) -> FolderObjects:
        notes = {"ended.json": "{}"} if ended else {}
        store.write(f"{trial}/head.json", Head("a", 1, notes=notes).encode(), None)
        store.upload(f"{trial}/step-00000012/a-1/0", tmp_path / "file")
        return store

    return of


def test_in_a_store_sweeps_go_whose_trials_have_all_ended_and_nothing_else(
    put: Callable[..., FolderObjects], tmp_path: Path
) -> None:
    for trial in ("u1.s.t0", "u1.s.t1", "u2.s.t0"):
        put(trial, ended=True)
    store = put("u2.s.t1", ended=False)
    store.upload("datasets/mnist.npz", tmp_path / "file")
    store.upload("u1.s.t0/notes.txt", tmp_path / "file")
    address = f"file://{tmp_path}/store"
    assert "u1.s" in cleaned(tmp_path, "--state", address).output
    done = cleaned(tmp_path, "--state", address, "--yes")
    assert done.exit_code == 0, done.output
    left = {found.key for found in store.list("")}
    assert left == {
        *("datasets/mnist.npz", "u1.s.t0/notes.txt"),
        *(f"u2.s.{trial}/{name}" for trial in ("t0", "t1") for name in ("head.json", "step-00000012/a-1/0")),
    }


def test_in_a_store_a_sweep_with_a_trial_that_died_goes_where_it_is_called_dead(
    put: Callable[..., FolderObjects], tmp_path: Path
) -> None:
    put("u2.s.t0", ended=True)
    store = put("u2.s.t1", ended=False)
    words = ("--state", f"file://{tmp_path}/store", "--dead", "--older-than")
    assert "There is nothing to remove." in cleaned(tmp_path, *words, "1h").output
    time.sleep(0.01)
    assert "2 (1 never ended)" in cleaned(tmp_path, *words, "0.01s").output
    assert cleaned(tmp_path, *words, "0.01s", "--yes").exit_code == 0
    assert list(store.list("")) == []


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """Make a volume with the trials of two sweeps, where one is not over, and with what is nobody's."""
    folder = tmp_path / "volume"
    for trial, over in (("u1.s.t0", True), ("u1.s.t1", True), ("u2.s.t0", True), ("u2.s.t1", False)):
        identity = Identity(trial, trial, "s", trial.rpartition(".")[0], None, {})
        for step in (8, 12):
            (folder / trial / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
        write_identity(folder / trial, identity)
        if over:
            write_ending(folder / trial, Ending.now("FINISHED"))
    (folder / "datasets" / "checkpoints" / "step-00000001").mkdir(parents=True)
    return folder


@pytest.mark.parametrize(("words", "left"), [((), set()), (("--keep", "newest"), {"step-00000012"})])
def test_on_a_volume_checkpoints_go_of_sweeps_whose_trials_have_all_ended(
    volume: Path, tmp_path: Path, words: tuple[str, ...], left: set[str]
) -> None:
    shown = cleaned(tmp_path, "--folder", str(volume), *words)
    assert shown.exit_code == 0, shown.output
    assert "u1.s" in shown.output
    assert "u2.s" not in shown.output
    assert len(list(volume.glob("*/checkpoints/*"))) == 9
    assert cleaned(tmp_path, "--folder", str(volume), *words, "--yes").exit_code == 0
    for trial in ("u1.s.t0", "u1.s.t1"):
        assert {path.name for path in (volume / trial / "checkpoints").iterdir()} == left
        assert (volume / trial / "trial.json").exists()
    assert len(list(volume.glob("u2.*/checkpoints/*"))) == 4
    assert len(list(volume.glob("datasets/checkpoints/*"))) == 1
    again = cleaned(tmp_path, "--folder", str(volume), *words).output
    assert "There is nothing to remove." in again


def test_on_a_volume_a_sweep_with_a_trial_that_died_goes_where_it_is_called_dead(volume: Path, tmp_path: Path) -> None:
    words = ("--folder", str(volume), "--dead", "--older-than")
    long_ago = time.time() - 7200
    for trial in volume.glob("u2.*"):
        for path in (trial, *trial.rglob("*")):
            os.utime(path, (long_ago, long_ago))
    (volume / "u1.s.t0" / "points.jsonl").write_text("")
    shown = cleaned(tmp_path, *words, "1h").output
    assert "2 (1 never ended)" in shown
    assert "u1.s" not in shown
    # A trial that lives may make no checkpoint for long.
    (volume / "u2.s.t1" / "points.jsonl").write_text("")
    assert "There is nothing to remove." in cleaned(tmp_path, *words, "1h").output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--state", "s3://b/p", "--keep", "newest"), "--state removes sweeps as a whole; leave --keep out."),
        (
            ("--folder", ".", "--keep", "best"),
            "Which trial is the best, a volume does not tell: --keep newest or none.",
        ),
        (("--folder", ".", "--state", "s3://b/p"), "--state and --folder are two places"),
        (("--dead", "--older-than", "30d"), "--dead is for --state and --folder"),
        (("--dead", "--folder", "."), "name an --older-than, such as 30d"),
        (("--folder", ".", "demo-1"), "leave out 'demo-1', or --folder."),
    ],
)
def test_what_makes_no_sense_together_is_refused(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    refused = cleaned(tmp_path, *words)
    assert refused.exit_code == 2
    assert why in " ".join(refused.output.split())


def test_a_store_that_is_none_is_told(tmp_path: Path) -> None:
    refused = cleaned(tmp_path, "--state", "ftp://x")
    assert refused.exit_code == 1
    assert "'ftp://x' is no store for checkpoints" in refused.output
    both = cleaned(tmp_path, "--state", f"file://{tmp_path}", "demo-1")
    assert both.exit_code == 2
    assert "leave out 'demo-1', or --state" in both.output
