"""Lines as a person sees them in a terminal."""

import time

import pytest

from mlflow_hooks.printed.lines import lines_of


@pytest.mark.parametrize(
    "printed",
    [
        b"\x1b[32mloss: \x1b[1m0.5\x1b[0m",
        b"\x1b[38;2;1;2;3mloss: 0.5\x1b[K",
        b"\x1b]0;a title\x07loss: 0.5",
        b"\x1b]8;;http://x\x1b\\loss: 0.5\x1b]8;;\x1b\\",
        b"\x1b(Bloss: 0.5\x08\x00",
        b"\x1b[?25lloss: 0.5\x1b[?25h",
    ],
)
def test_what_steers_a_terminal_is_no_part_of_a_line(printed: bytes) -> None:
    assert lines_of(printed) == ["loss: 0.5"]


def test_what_is_overwritten_is_a_line_of_its_own() -> None:
    assert lines_of(b"loss=2\rloss=1\r\nloss=0\x1b[1Gdone\n") == ["loss=2", "loss=1", "loss=0", "done", ""]


@pytest.mark.parametrize("part", [b"\x1b", b"\x1b[", b"\x1b[1;", b"\x1b]", b"\x1b]x", b"\x1b[1 ", b"\x00"])
def test_escapes_without_an_end_take_no_time(part: bytes) -> None:
    began = time.process_time()
    lines_of(part * 20_000)
    lines_of(part + b"1" * 100_000)
    assert time.process_time() - began < 1
