"""The sweeps of a cluster that have not ended, and what its controller gives each, as their workflows tell it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from controllers.core.queue_places import QueuePlace, places_in
from controllers.worlds.argo.reading.workflows import WorkflowRecord
from hera_specon.cluster.access import Access, read_workflows

UNTOLD: Final = "no controller has told anything of it"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """The sweeps of one workflow under one policy. ``place`` is None where no controller tells of them."""

    namespace: str
    workflow: str
    sweeps: tuple[str, ...]
    place: QueuePlace | None

    def told(self) -> dict[str, Any]:
        """Return it as JSON has it; times in UTC, empty where there is none."""
        place = self.place or QueuePlace(reason=UNTOLD)
        times = {name: _in_utc(getattr(place, name)) for name in ("waits_since", "told_at")}
        about = {"namespace": self.namespace, "workflow": self.workflow, "sweeps": list(self.sweeps)}
        return {**about, **asdict(place), **times}


def read_queue(access: Access, *, everywhere: bool) -> list[QueueRow]:
    """Return a row for each policy of each workflow that has not ended, those of a namespace together.

    Raises:
        ApiError: The workflows may not be read.
    """
    records = [record for record in read_workflows(access, everywhere=everywhere) if not record.finished]
    rows = [row for record in sorted(records, key=lambda record: record.created_at) for row in _rows_of(record)]
    return sorted(rows, key=lambda row: (row.namespace, -(row.place.priority if row.place else 0)))


def _rows_of(record: WorkflowRecord) -> Iterator[QueueRow]:
    told = {place.policy: place for place in places_in(record.annotations)}
    of_policy: dict[str, list[str]] = {}
    for sweep in record.sweeps:
        of_policy.setdefault(sweep.policy or _policy_left_open(told, record), []).append(_short(sweep.id, record))
    for policy, sweeps in of_policy.items():
        yield QueueRow(record.namespace, record.name, tuple(sweeps), told.get(policy))


def _policy_left_open(told: Mapping[str, QueuePlace], record: WorkflowRecord) -> str:
    """Return the policy of sweeps that name none: the one that is told of and no sweep names."""
    named = {sweep.policy for sweep in record.sweeps}
    left: Sequence[str] = [policy for policy in told if policy not in named]
    return left[0] if left else ""


def _short(sweep: str, record: WorkflowRecord) -> str:
    return sweep.removeprefix(f"{record.sweep_uid}.")


def _in_utc(epoch_s: float) -> str:
    try:
        return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="seconds") if epoch_s > 0 else ""
    except (ValueError, OverflowError, OSError):
        return ""
