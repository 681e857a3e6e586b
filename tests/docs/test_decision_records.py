"""Each record of a decision says what it rests on, so that a reader knows when to look at it again."""

from pathlib import Path
from typing import Final

import pytest

RECORDS: Final = sorted((Path(__file__).parents[2] / "docs" / "decisions").glob("*.md"))
INVARIANTS: Final = "\n## If this stops holding, look again\n"


def test_records_are_numbered_without_a_gap() -> None:
    assert [record.name[:4] for record in RECORDS] == [f"{number:04}" for number in range(1, len(RECORDS) + 1)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_a_status_and_ends_with_what_it_rests_on(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    number = int(record.name[:4])
    assert text.startswith(f"# {number}. ")
    assert "\nStatus: " in text.partition("\n## ")[0]
    invariants = text.partition(INVARIANTS)[2]
    assert invariants.count("\n- ") >= 2
    assert "\n## " not in invariants
