"""Every reader of foreign text takes whatever comes, in time that grows with the text only.

``FUZZ_S=600`` tries fresh texts for so many seconds; ``FUZZ_SEED=1234567890-17`` tries the text of that seed alone.
"""

import os
import time
from pathlib import Path
from typing import Final

import pytest

from tests.foreign_text.readers import READERS
from tests.foreign_text.texts import MOST, text_of

_FEW: Final = 60
_MOST_CPU_S: Final = 20.0
"""For a text of ``MOST`` bytes a reader takes two seconds at most; what is quadratic takes minutes."""


def try_out(seed: str, folder: Path) -> None:
    text = text_of(seed)
    assert len(text) <= MOST + 100
    for read in READERS:
        began = time.process_time()
        try:
            read(text, folder)
        except Exception as error:
            error.add_note(f"FUZZ_SEED={seed}: {read.__name__} of {text[:200]!r}")
            raise
        assert time.process_time() - began < _MOST_CPU_S, f"FUZZ_SEED={seed}: {read.__name__} of {text[:200]!r}"


@pytest.mark.parametrize("seed", os.environ.get("FUZZ_SEED", "").split() or [f"few-{number}" for number in range(_FEW)])
def test_a_text_harms_no_reader(tmp_path: Path, seed: str) -> None:
    try_out(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_fresh_text_harms_any_reader(tmp_path: Path) -> None:
    first, until = str(time.time_ns()), time.monotonic() + float(os.environ.get("FUZZ_S", "600"))
    print(f"texts of the seeds {first}-0, {first}-1, ...")  # noqa: T201 - so that a failure can be repeated
    number = 0
    while time.monotonic() < until:
        try_out(f"{first}-{number}", tmp_path)
        number += 1
    print(f"{number} texts")  # noqa: T201 - as above
