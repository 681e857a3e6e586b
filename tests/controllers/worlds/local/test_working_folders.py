"""A trial's own working folder begins as the project, and what the trial writes into it stays its own."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from controllers.tracking.access import absolute
from controllers.worlds.local import working_folders
from controllers.worlds.local.working_folders import Project, WorkingFolderError, read_own, working_folder

Make = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a project in a subfolder, and data beside the repository."""
    repository = tmp_path / "work" / "repository"
    folder = repository / "examples" / "mnist"
    write(tmp_path / "work" / "data" / "train.bin", "data")
    write(repository / ".git" / "HEAD", "ref: refs/heads/main")
    write(repository / "library" / "__init__.py", "")
    write(folder / "train.py", "print('one')")
    write(folder / "pkg" / "__init__.py", "")
    write(folder / "checkpoints" / "last.pt", "by hand")
    write(folder / ".specon" / "runs" / "r-1" / "run.json", "{}")
    write(folder / ".venv" / "pyvenv.cfg", "")
    return folder


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def make(project: Path) -> Make:
    def made(trial: str = "t0", own: tuple[str, ...] = ()) -> Path:
        state = project / ".specon"
        return working_folder(Project(project, state, own), state / "runs" / "r-1" / "work" / trial)

    return made


def test_a_trial_finds_the_project_and_what_is_beside_it(project: Path, make: Make) -> None:
    own = make()
    assert own != project
    assert (own / "train.py").read_text() == "print('one')"
    assert (own / "../../library/__init__.py").exists()
    assert (own / "../../../data/train.bin").read_text() == "data"
    assert not (own / ".specon").exists()
    assert (own / ".venv").is_symlink()
    assert os.path.realpath(own / "../../.git") == str(project.parents[1] / ".git")


def test_where_there_is_no_repository_a_trial_finds_what_is_two_folders_above(tmp_path: Path) -> None:
    folder = tmp_path / "examples" / "autoencoder"
    write(folder / "train.py", "")
    write(tmp_path / "examples" / "shared.py", "")
    write(tmp_path / "Datasets" / "train.bin", "data")
    own = working_folder(Project(folder, folder / ".specon"), folder / ".specon" / "runs" / "r-1" / "work" / "t0")
    assert (own / "../shared.py").exists()
    assert (own / "../../Datasets/train.bin").read_text() == "data"


def test_what_a_trial_writes_is_its_own_also_where_the_project_has_such_a_file(project: Path, make: Make) -> None:
    one, other = make("t0"), make("t1")
    for own in (one, other):
        write(own / "model.pt", own.parts[-5])
        write(own / "checkpoints" / "new.pt", str(own))
        with (own / "checkpoints" / "last.pt").open("a") as file:
            file.write(" and by a trial")
        (own / "train.py").unlink()
    assert (one / "model.pt").read_text() != "" != (other / "checkpoints" / "new.pt").read_text()
    assert (one / "checkpoints" / "new.pt").read_text() == str(one)
    assert (project / "checkpoints" / "last.pt").read_text() == "by hand"
    assert [path.name for path in (project / "checkpoints").iterdir()] == ["last.pt"]
    assert (project / "train.py").exists()
    assert not (project / "model.pt").exists()


def test_the_next_attempt_finds_what_the_trial_wrote_and_what_was_edited(project: Path, make: Make) -> None:
    own = make()
    write(own / "model.pt", "mine")
    write(own / "checkpoints" / "last.pt", "mine")
    (own / "pkg" / "__init__.py").unlink()
    write(project / "train.py", "print('two: edited')")
    write(project / "new.py", "new")
    write(project / "checkpoints" / "last.pt", "by hand, once more")
    write(project / "model.pt", "by hand")
    assert make() == own
    assert (own / "train.py").read_text() == "print('two: edited')"
    assert (own / "new.py").read_text() == "new"
    assert (own / "model.pt").read_text() == (own / "checkpoints" / "last.pt").read_text() == "mine"
    assert not (own / "pkg" / "__init__.py").exists()


def test_a_folder_that_was_begun_and_not_finished_is_made_again(project: Path, make: Make) -> None:
    half = project / ".specon" / "runs" / "r-1" / "work" / "t0.new"
    write(half / "left.txt", "half")
    own = make()
    assert (own / "train.py").exists()
    assert not half.exists()


def test_large_files_and_folders_are_linked_unless_they_are_named(
    project: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_folders, "LARGEST_FILE", 1000)
    monkeypatch.setattr(working_folders, "MOST_FILES", 20)
    write(project / "weights.bin", "x" * 2000)
    write(project / "out" / "best.bin", "x" * 2000)
    for number in range(30):
        write(project / "images" / "train" / f"{number}.png", "x")
    own = make("t0")
    assert [path.is_symlink() for path in (own / "weights.bin", own / "out", own / "images")] == [True, False, True]
    assert (own / "out" / "best.bin").is_symlink()
    named = make("t1", ("out", "images/train"))
    assert [path.is_symlink() for path in (named / "out" / "best.bin", named / "images")] == [False, False]
    assert len(list((named / "images" / "train").iterdir())) == 30
    assert not (named / "images" / "train" / "0.png").is_symlink()


@pytest.mark.parametrize("link", ["project", "above"])
def test_the_state_folder_is_left_out_also_behind_a_link(tmp_path: Path, link: str) -> None:
    state, folder = tmp_path / "disk" / "state", tmp_path / "home" / "project"
    write(folder / "train.py", "")
    state.mkdir(parents=True)
    place = folder if link == "project" else folder.parent
    (place / ".specon").symlink_to(state)
    own = working_folder(Project(folder, state), state / "runs" / "r-1" / "work" / "t0")
    assert [path.name for path in own.iterdir()] == ["train.py"]
    assert not os.path.lexists(own.parent / ".specon")


def test_a_folder_that_holds_the_runs_is_copied_without_them(project: Path) -> None:
    state = project / "out" / "specon"
    write(project / "out" / "ckpt.pt", "x")
    own = working_folder(Project(project, state), state / "runs" / "r-1" / "work" / "t0")
    assert [path.name for path in (own / "out").iterdir()] == ["ckpt.pt"]


def test_links_of_the_project_lead_where_they_led(project: Path, make: Make) -> None:
    (project / "data").symlink_to("../../../data")
    (project / "broken").symlink_to("nowhere")
    (project / "loop").symlink_to("loop")
    own = make()
    assert (own / "data" / "train.bin").read_text() == "data"
    assert (own / "broken").is_symlink()
    assert make() == own


def test_a_folder_with_too_many_files_at_its_top_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_folders, "MOST_AT_TOP", 3)
    with pytest.raises(WorkingFolderError, match="holds more than 3 files"):
        make()


def test_git_tells_of_a_copy_what_it_tells_of_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    write(folder / "train.py", "print(1)")
    write(folder / "pkg" / "model.py", "x = 1")
    write(folder / ".gitignore", ".specon")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "one")
    own = working_folder(Project(folder, folder / ".specon"), folder / ".specon" / "runs" / "r" / "work" / "t0")
    assert git(own, "rev-parse", "HEAD") == git(folder, "rev-parse", "HEAD")
    assert git(own, "status", "--porcelain") == ""
    assert git(own, "rev-parse", "--show-toplevel").strip() == str(own)


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["/usr/bin/env", "git", *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("http://mlflow:5000", "http://mlflow:5000"),
        ("sqlite:///mlflow.db", "sqlite:////home/me/mlflow.db"),
        ("sqlite:////data/mlflow.db", "sqlite:////data/mlflow.db"),
        ("file:./mlruns", "file:///home/me/mlruns"),
        ("file:///data/mlruns", "file:///data/mlruns"),
        ("mlruns", "/home/me/mlruns"),
        ("/data/mlruns", "/data/mlruns"),
        ("databricks", "databricks"),
        ("", ""),
    ],
)
def test_mlflows_relative_stores_are_those_of_the_users_folder(uri: str, expected: str) -> None:
    assert absolute(uri, Path("/home/me")) == expected


@pytest.mark.parametrize("text", ["true", "{}", "[1]", "[", '["/abs"]', '["../up"]', '["."]', '[""]'])
def test_an_annotation_that_names_no_paths_within_the_folder_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="which is no"):
        read_own(text)


def test_the_annotation_tells_what_to_copy() -> None:
    assert read_own("") is None
    assert read_own(json.dumps(["out", "a/b"])) == ("out", "a/b")
