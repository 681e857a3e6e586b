"""Standard output is for what a command prints: others' words go elsewhere, and its reader may leave."""

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import rich
from click.testing import CliRunner

from hera_specon.cli.group import PoliteGroup

ROOT = Path(__file__).parents[3]
NOISY = """
import ctypes, subprocess, sys, warnings
print("by Python")
sys.__stdout__.write("by Python, too\\n")
subprocess.run(["echo", "by a process"])
ctypes.CDLL(None).puts(b"by a C library")
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize
with Workflow(generate_name="s-", entrypoint="s") as w:
    Sweep(
        name="s", image="x", state_claim="c", command=["true"], space={"a": choice(1)}, search="grid",
        objective=minimize("loss"),
    )
"""


def python(program: str, folder: Path, shell: str = "") -> "subprocess.CompletedProcess[str]":
    """Run ``program`` with its output as pipes; ``shell`` goes on behind it."""
    (folder / "program.py").write_text(textwrap.dedent(program))
    return subprocess.run(
        ["/bin/bash", "-c", f'"$0" program.py {shell}', sys.executable],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_a_file_prints_while_it_is_read_goes_to_standard_error(tmp_path: Path) -> None:
    (tmp_path / "sweep.py").write_text(NOISY)
    ended = python(
        """
        from pathlib import Path
        from hera_specon.workflow_file import load_workflow
        print("before")
        found = load_workflow(Path("sweep.py"))
        print(found.name)
        """,
        tmp_path,
    )
    assert ended.stdout == "before\ns\n"
    for who in ("by Python", "by Python, too", "by a process", "by a C library"):
        assert who in ended.stderr


def test_the_json_of_a_command_stands_alone_whatever_the_file_prints(tmp_path: Path) -> None:
    (tmp_path / "sweep.py").write_text(NOISY)
    ended = python("from hera_specon.cli import main; main()", tmp_path, "submit sweep.py --dry-run")
    assert ended.stdout.startswith(("apiVersion:", "kind:", "metadata:")), ended
    assert "by Python" in ended.stderr


def test_a_file_is_read_also_where_standard_output_is_closed(tmp_path: Path) -> None:
    (tmp_path / "sweep.py").write_text(NOISY.replace("sys.__stdout__", "sys.stderr"))
    reads = """
        import sys
        from pathlib import Path
        from hera_specon.workflow_file import load_workflow
        print(load_workflow(Path("sweep.py")).name, file=sys.stderr)
        """
    ended = python(reads, tmp_path, ">&-")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (0, "s")


def test_a_console_that_outlives_its_reader_says_so_once_and_the_work_goes_on(tmp_path: Path) -> None:
    ended = python(
        """
        import sys, time
        from hera_specon.cli.output import open_console, say_lines
        console = open_console(None, outlives=True)
        for number in range(4):
            say_lines(f"line {number} [x] :smile: {'w' * 200}", console)
            time.sleep(0.3)
        console.print("the table")
        print("went on", file=sys.stderr)
        """,
        tmp_path,
        "| head -1",
    )
    assert ended.stdout == f"line 0 [x] :smile: {'w' * 200}\n"
    told, went_on = ended.stderr.splitlines()
    assert "the sweep goes on" in told
    assert went_on == "went on"


@pytest.mark.parametrize("command", ["policies", "simulate --help"])
def test_other_commands_end_quietly_where_their_reader_has_left(tmp_path: Path, command: str) -> None:
    program = "import time; time.sleep(0.5); from hera_specon.cli import main; main()"
    assert python(program, tmp_path, f"{command} | true").stderr == ""


@pytest.mark.filterwarnings("default")
def test_a_warning_of_a_library_is_one_line_without_its_place_and_stands_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_usual: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: as_usual.append(str(message)))
    group = PoliteGroup("specon")

    @group.command("warn")
    def warn() -> None:
        for category in (UserWarning, UserWarning, DeprecationWarning):
            warnings.warn_explicit("mind\nthe gap", category, rich.__file__, 7)
        warnings.warn_explicit("mine", UserWarning, "sweep.py", 3)

    shown = CliRunner().invoke(group, ["warn"]).stderr
    assert shown.count("Warning: rich says: mind") == 1
    assert rich.__file__ not in shown
    assert as_usual == ["mine"]
