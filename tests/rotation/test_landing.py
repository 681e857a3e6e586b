"""The number of the landing is raised once for each change, and a change is what came since the one before it."""

import subprocess
from pathlib import Path

import pytest

from tests.rotation.landing import (
    BASE,
    COUNTER,
    LONGEST_CHANGE_H,
    LandingError,
    base,
    changed_files,
    landing,
    raise_it,
    why_not_raised,
)

_HOUR = 3600


class Repository:
    """A repository whose commits are made at hours that the test chooses."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        (root / ".ci").mkdir()
        self.counts(7)

    def git(self, *arguments: str, hour: float = 0) -> str:
        at = f"{int(1_700_000_000 + hour * _HOUR)} +0000"
        settings = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *settings, *arguments],  # noqa: S607
            cwd=self.root,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def counts(self, number: object) -> None:
        (self.root / COUNTER).write_text(f"{number}\n", encoding="utf-8")

    def commit(self, hour: float, file: str = "code.py") -> str:
        (self.root / file).write_text(f"{hour}\n", encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"at {hour}", hour=hour)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.delenv(BASE, raising=False)
    return Repository(tmp_path)


def test_a_change_that_did_not_raise_the_number_is_refused_with_what_to_do(repository: Repository) -> None:
    landed = repository.commit(0)
    repository.commit(10)
    repository.commit(12)
    problem = why_not_raised(repository.root)
    assert problem is not None
    assert landed[:10] in problem
    assert "python -m tests.rotation raise" in problem


def test_a_change_of_several_commits_raises_it_once(repository: Repository) -> None:
    repository.commit(0)
    repository.commit(10)
    assert raise_it(repository.root) == 8
    repository.commit(11)
    assert why_not_raised(repository.root) is None
    assert raise_it(repository.root) == 8
    assert landing(repository.root) == 8


def test_the_change_is_what_came_within_its_hours_or_since_the_commit_that_a_service_names(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = repository.commit(0, "old.py")
    inside = repository.commit(10, "a.py")
    repository.commit(10 + LONGEST_CHANGE_H - 0.5, "b.py")
    (repository.root / "new.py").touch()
    assert base(repository.root) == landed
    assert changed_files(repository.root) == ("a.py", "b.py", "new.py")
    monkeypatch.setenv(BASE, inside)
    assert changed_files(repository.root) == ("b.py", "new.py")
    assert why_not_raised(repository.root) is not None


def test_where_the_history_does_not_reach_back_nothing_is_refused_and_nothing_is_guessed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(0)
    assert base(repository.root) is None
    assert changed_files(repository.root) is None
    assert why_not_raised(repository.root) is None
    monkeypatch.setenv(BASE, "0" * 40)
    assert base(repository.root) is None


@pytest.mark.parametrize("number", ["", "seven", "-1", "7 8"])
def test_a_counter_that_holds_no_number_is_said(repository: Repository, number: str) -> None:
    repository.counts(number)
    with pytest.raises(LandingError, match="instead of the number of a landing"):
        landing(repository.root)
