"""A release is made of a commit, once."""

from pathlib import Path

import pytest

from tests.release.checks import tag_problems
from tests.release.repository import git, uncommitted


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "first")
    return tmp_path


def commit(folder: Path, subject: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = git(folder, *who, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", subject)
    assert done.returncode == 0, done.stderr


def test_a_version_without_a_tag_may_be_released(repository: Path) -> None:
    assert list(tag_problems(repository, "v1.2.3", tagged=False)) == []


def test_a_version_that_has_its_tag_is_not_released_again(repository: Path) -> None:
    git(repository, "tag", "v1.2.3")
    (told,) = tag_problems(repository, "v1.2.3", tagged=False)
    assert told.startswith("v1.2.3 is there already")


def test_a_pushed_tag_has_to_lead_to_what_is_checked_out(repository: Path) -> None:
    (missing,) = tag_problems(repository, "v1.2.3", tagged=True)
    git(repository, "-c", "user.name=a", "-c", "user.email=a@example.org", "tag", "-a", "v1.2.3", "-m", "1.2.3")
    assert list(tag_problems(repository, "v1.2.3", tagged=True)) == []
    commit(repository, "second")
    (elsewhere,) = tag_problems(repository, "v1.2.3", tagged=True)
    assert missing == elsewhere == "v1.2.3 does not lead to the commit that is checked out"


def test_a_file_that_is_not_committed_is_named(repository: Path) -> None:
    assert uncommitted(repository) == []
    (repository / "new.py").write_text("", encoding="utf-8")
    assert uncommitted(repository) == ["?? new.py"]
