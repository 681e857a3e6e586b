"""Programs of the shapes that public ones have: each page's 'after' ends as its 'before', whatever happens to it."""

import importlib.util
import multiprocessing
import os
import re
import runpy
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = [
    pytest.mark.pytorch,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra"),
]
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "public-programs.md"
_SECTION: Final = re.compile(r"^### (.*?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHAPES: Final = {title: _BLOCK.findall(text) for title, text in _SECTION.findall(PAGE.read_text(encoding="utf-8"))}
_FORKED: Final = multiprocessing.get_context("forkserver")


def train(script: Path, output: Path, env: dict[str, str], at: int, how: int) -> None:
    """Run ``script``; a signal strikes once step ``at`` is done. It saves after each step."""
    os.environ.update(env)
    multiprocessing.set_start_method("fork", force=True)  # as by hand; this process came from a fork server
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.path.insert(0, str(PAGE.parents[2]))
    from mlflow_hooks import saving, session  # noqa: PLC0415 - in the process that trains

    noted = session.TrialSession.note_step

    def struck(self: session.TrialSession, step: int) -> None:
        if step == at and how == signal.SIGKILL:
            os.kill(os.getpid(), how)
        noted(self, step)
        if step == at:
            os.kill(os.getpid(), how)

    session.TrialSession.note_step = struck  # type: ignore[method-assign]
    saving.Saving.due = lambda self: True  # type: ignore[method-assign]  # noqa: ARG005
    runpy.run_path(str(script), run_name="__main__")


def test_the_page_has_four_shapes_each_before_and_after() -> None:
    assert [len(blocks) for blocks in SHAPES.values()] == [2, 2, 2, 2]


@pytest.mark.parametrize("title", SHAPES)
def test_a_program_with_hooks_ends_as_the_one_without_by_hand_moved_and_killed(tmp_path: Path, title: str) -> None:
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    for path, text in zip((before, after), SHAPES[title], strict=True):
        path.write_text(text)
    _FORKED.set_forkserver_preload(["torch"])

    def run(script: Path, trial: str = "", at: int = -1, how: int = signal.SIGTERM) -> tuple[int | None, str]:
        env = {"OMP_NUM_THREADS": "1", "SPECON_STATE_ROOT": str(tmp_path / "state")}
        env |= {"SPECON_TRIAL_ID": trial} if trial else {}
        output = tmp_path / f"{trial}-{at}.log"
        process = _FORKED.Process(target=train, args=(script, output, env, at, how))
        process.start()
        process.join(400)
        said = output.read_text()
        lines = [line.partition("loss ")[2] for line in said.splitlines() if "loss " in line]
        return process.exitcode, lines[-1] if lines else said

    code, expected = run(before)
    assert code == 0, expected
    assert run(after, "s.whole") == (0, expected)
    assert run(after, "s.moved", at=3)[0] == 75
    assert run(after, "s.moved") == (0, expected)
    assert run(after, "s.killed", at=4, how=signal.SIGKILL)[0] == -signal.SIGKILL
    assert run(after, "s.killed") == (0, expected)
