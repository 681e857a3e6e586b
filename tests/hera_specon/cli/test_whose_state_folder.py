"""A state folder that somebody else may have prepared is refused by name: what it holds would be run."""

import grp
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

import hera_specon
from controllers.local_run.run_folder import find_or_make_run
from controllers.worlds.local.trusted_folders import UntrustedFolderError, check_trusted, make_private
from hera_specon.cli.main import main
from tests.hera_specon.report.example_run import write_example_run

SOMEBODY = 54321
SWEEP = Path(__file__).parents[3] / "workflows" / "demo.py"

COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", str(SWEEP)),
    "continue": ("run", str(SWEEP), "--continue"),
    "status": ("status", "demo-1"),
    "newest": ("status",),
    "ui": ("ui", "--no-open"),
    "resume": ("resume", "demo-1", "--all"),
    "pause": ("pause", "demo-1", "--all"),
    "stop": ("stop", "demo-1", "--all"),
    "set-policy": ("set-policy", "demo-1", "default"),
    "report": ("report", "demo-1"),
    "export": ("export", "demo-1"),
    "clean": ("clean", "--yes"),
    "replay": ("replay", "demo-1"),
}


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return tmp_path / "configuration" / "hera-specon" / "trusted-folders"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Make a state folder with a run of our own."""
    write_example_run(tmp_path / "project" / ".specon")
    return tmp_path / "project" / ".specon"


@pytest.fixture
def belongs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have folders belong to other users and groups, and this process to ``me``, as the system tells it."""

    def given(folders: dict[Path, tuple[int, int]], me: int = 1000, members: tuple[str, ...] = ()) -> None:
        real = Path.stat

        def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
            about = real(path, follow_symlinks=follow_symlinks)
            uid, gid = folders.get(path, (me, me))
            return os.stat_result((*about[:4], uid, gid, *about[6:10]))

        names = {0: "root", 1000: "ann", SOMEBODY: "bob"}
        groups = {**names, 100: "lab"}
        monkeypatch.setattr(Path, "stat", stat)
        monkeypatch.setattr(os, "geteuid", lambda: me)
        monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(pw_name=names[number]))
        monkeypatch.setattr(grp, "getgrgid", lambda number: SimpleNamespace(gr_name=groups[number], gr_mem=[*members]))

    return given


def specon(state: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--state-dir", str(state)])


@pytest.mark.parametrize(
    ("command", "planted"),
    [
        *((command, planted) for command in COMMANDS for planted in (".", "runs")),
        *((command, "runs/demo-1/00-default") for command in ("status", "resume", "stop", "report", "replay")),
    ],
)
def test_every_command_refuses_a_state_folder_that_others_can_write(command: str, planted: str, state: Path) -> None:
    (state / planted).chmod(0o777)
    refused = specon(state, *COMMANDS[command])
    assert (refused.exit_code, "can be written to by others (mode 777)" in refused.output) == (2, True), refused.output
    assert f"specon trust {state}" in refused.output.replace("\n", " ")
    assert not (state / "runs" / "demo-2").exists()


def test_python_refuses_it_too(state: Path) -> None:
    state.chmod(0o777)
    with pytest.raises(UntrustedFolderError, match="can be written to by others"):
        hera_specon.load("demo-1", state)


def test_a_run_that_is_named_by_its_folder_is_looked_at_too(state: Path, tmp_path: Path) -> None:
    (state / "runs" / "demo-1").chmod(0o777)
    refused = specon(tmp_path / "own", "status", str(state / "runs" / "demo-1"))
    assert (refused.exit_code, "can be written to by others" in refused.output) == (2, True)


def test_once_the_user_has_allowed_it_commands_go_on(state: Path, own_configuration: Path) -> None:
    state.chmod(0o777)
    allowed = CliRunner().invoke(main, ["trust", str(state)])
    assert (allowed.exit_code, own_configuration.read_text()) == (0, f"{state}\n"), allowed.output
    assert specon(state, "status", "demo-1").exit_code == 0
    assert CliRunner().invoke(main, ["trust", str(state)]).exit_code == 0
    assert own_configuration.read_text() == f"{state}\n"


def test_what_others_could_have_allowed_counts_for_nothing(state: Path, own_configuration: Path) -> None:
    state.chmod(0o777)
    assert CliRunner().invoke(main, ["trust", str(state.parent)]).exit_code == 0
    own_configuration.chmod(0o666)
    assert specon(state, "status", "demo-1").exit_code == 2


def test_somebody_elses_folder_is_refused_by_name_and_roots_is_not(state: Path, belongs: Callable[..., None]) -> None:
    belongs({state: (SOMEBODY, SOMEBODY)})
    with pytest.raises(UntrustedFolderError, match=rf"{state} belongs to bob \({SOMEBODY}\), and not to you"):
        check_trusted(state)
    belongs({state: (0, 0)})
    check_trusted(state)


def test_root_uses_the_folder_of_the_user_who_called_sudo(
    state: Path, belongs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    belongs({state: (SOMEBODY, SOMEBODY)}, me=0)
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY))
    check_trusted(state)


@pytest.mark.parametrize("caller", [None, "1000", "0x1", "", str(10**30)])
def test_root_uses_the_folder_of_no_other_user(
    caller: str | None, state: Path, belongs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    belongs({state: (SOMEBODY, SOMEBODY)}, me=0)
    if caller is not None:
        monkeypatch.setenv("SUDO_UID", caller)
    with pytest.raises(UntrustedFolderError, match="belongs to bob"):
        check_trusted(state)


def test_only_root_is_asked_who_called_sudo(
    state: Path, belongs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    belongs({state: (SOMEBODY, SOMEBODY)})
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY))
    with pytest.raises(UntrustedFolderError):
        check_trusted(state)


@pytest.mark.parametrize(("gid", "members"), [(1000, ()), (1000, ("ann",)), (0, ()), (0, ("root",))])
def test_a_folder_that_its_owners_own_group_can_write_is_used(
    gid: int, members: tuple[str, ...], state: Path, belongs: Callable[..., None]
) -> None:
    state.chmod(0o775)
    belongs({state: (1000, gid)}, members=members)
    check_trusted(state)


@pytest.mark.parametrize(("gid", "members"), [(1000, ("bob",)), (1000, ("ann", "bob")), (100, ()), (0, ("bob",))])
def test_a_folder_that_a_group_of_several_can_write_is_refused(
    gid: int, members: tuple[str, ...], state: Path, belongs: Callable[..., None]
) -> None:
    state.chmod(0o775)
    belongs({state: (1000, gid)}, members=members)
    with pytest.raises(UntrustedFolderError, match="mode 775"):
        check_trusted(state)


def test_a_state_folder_that_we_make_is_writable_by_nobody_else_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        find_or_make_run(tmp_path / ".specon", "demo", {}, fresh=True).of_policy(0, "default")
        make_private(tmp_path / ".specon" / "mlflow")
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / ".specon").rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in [tmp_path / ".specon", *made]} == {0o755}
    check_trusted(tmp_path / ".specon")
