"""What waits for MLflow takes bounded memory, however many sweeps there are."""

from dataclasses import dataclass
from typing import Any

import pytest

from controllers.cluster import sweep_record
from controllers.cluster.sweep_record import TIMELINE, SweepRecord
from controllers.tracking.sweep_runs import Steering


@dataclass(frozen=True)
class Line:
    """Something that is recorded."""

    number: int

    def to_json(self) -> str:
        return str(self.number)


def waiting(records: list[SweepRecord]) -> list[list[str]]:
    return [[line.to_json() for line in record._waiting[TIMELINE]] for record in records]


def test_records_share_the_room_for_what_waits_and_drop_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_record, "_MOST_WAITING", 12)
    sweep_record._unwritten.clear()
    client: Any = None
    records = [SweepRecord(client, Steering("t", "p", f"uid-{number}"), over=False) for number in range(3)]
    lines: Any = [Line(number) for number in range(20)]
    records[0].append(lines)
    assert waiting(records[:1]) == [[str(number) for number in range(8, 20)]]
    for record in (*records, *records):
        record.append(lines)
    assert [len(one) for one in waiting(records)] == [4, 4, 4]
    assert waiting(records)[0] == ["16", "17", "18", "19"]
