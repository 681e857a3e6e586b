"""The cores that others use of a sweep's nodes while it runs, as far as its trials lack them."""

from collections.abc import Mapping

from controllers.core.actions import Assessment
from controllers.core.model import Snapshot, TrialId


class OthersLoad:
    """An observer that keeps the mean since it began to look. What trials do not lack, nobody tells of."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._taken = self._core_seconds = self._seconds = 0.0

    @property
    def cores(self) -> float:
        """Cores that others had on average."""
        return self._core_seconds / self._seconds if self._seconds else 0.0

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Count what others had since the look before."""
        del assessments, reasons
        passed_s = 0.0 if self._at is None else max(0.0, snapshot.now - self._at)
        self._core_seconds += passed_s * self._taken
        self._seconds += passed_s
        self._at, self._taken = snapshot.now, sum(node.cpu - node.supplied for node in snapshot.nodes)
