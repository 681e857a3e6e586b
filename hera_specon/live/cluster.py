"""Sweeps in a namespace of a cluster, as far as the reader may see them, and only to be read.

Each look goes to the API server with the reader's own login, and to MLflow. So nobody sees by this page what they could
not see without it.
"""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from controllers.tracking.access import be_impatient
from hera_specon.cluster.access import Access, find_workflow, read_workflows, workflow_record
from hera_specon.live.paced import Made, PacedPart
from hera_specon.live.standing import SweepStanding, node_lines, trial_lines
from hera_specon.live.sweeps import ReadOnlyError, SweepLine

MOST_SWEEPS: Final = 500
"""Workflows that are listed, the newest first, and kept in mind."""
STANDING_S: Final = 5.0
REPORT_S: Final = 30.0


class ClusterShelf:
    """The workflows with a sweep in one namespace.

    Args:
        access: to the cluster, as the reader.
        uri: where MLflow answers from here; None for the address that the pods use.
    """

    def __init__(self, access: Access, uri: str | None) -> None:
        be_impatient()  # a page must not wait for minutes until MLflow's client gives up
        self._access = access
        self._uri = uri
        self._sweeps: dict[str, ClusterSweep] = {}
        self._lock = threading.Lock()

    def lines(self) -> Sequence[SweepLine]:
        """Return a line for each workflow.

        Raises:
            ApiError: they may not be read, or the API server is away.
        """
        return [
            SweepLine(
                record.name,
                "over" if record.finished else "running",
                datetime.fromtimestamp(record.created_at, UTC).isoformat(timespec="seconds"),
                ", ".join(sweep.id.partition(".")[2] for sweep in record.sweeps),
            )
            for record in read_workflows(self._access)[:MOST_SWEEPS]
        ]

    def sweep(self, name: str) -> "ClusterSweep":
        """Return the workflow of that name.

        Raises:
            SpeconError: there is none, or it may not be read.
        """
        with self._lock:
            if name not in self._sweeps:
                workflow_record(find_workflow(self._access, name))  # refuses what is not there, or is no sweep
                self._sweeps[name] = ClusterSweep(self._access, name, self._uri)
            return self._sweeps[name]


class ClusterSweep:
    """A workflow, to be looked at.

    Args:
        access: to the cluster, as the reader.
        name: of the workflow.
        uri: where MLflow answers from here; None for the address that the pods use.
    """

    def __init__(self, access: Access, name: str, uri: str | None) -> None:
        self._access = access
        self._name = name
        self._uri = uri
        self._standing = PacedPart(self._make_standing, STANDING_S)
        self._report = PacedPart(self._make_report, REPORT_S)

    def now(self) -> Made:
        """Return how it stands, as HTML."""
        return self._standing.get()

    def body(self) -> Made:
        """Return what its report shows so far, as HTML."""
        return self._report.get()

    def ask(self, what: str, trials: Sequence[str] | None) -> list[str]:
        """Refuse.

        Raises:
            ReadOnlyError: always.
        """
        del trials
        message = f"this page only shows sweeps in a cluster: specon {what} {self._name} -n {self._access.namespace}"
        raise ReadOnlyError(message)

    def set_policy(self, spec: str) -> list[str]:
        """Refuse, as ``ask`` does."""
        del spec
        return self.ask("set-policy", None)

    def _make_standing(self) -> str:
        from hera_specon.cluster.sweep_state import read_state  # noqa: PLC0415 - MLflow takes seconds

        state = read_state(self._access, self._name, self._uri)
        lines = trial_lines(state, {}, may_ask=False)
        return SweepStanding(state=state, nodes=node_lines(state, ()), idle=0, trials=lines).html()

    def _make_report(self) -> str:
        from controllers.tracking.client import CarefulClient  # noqa: PLC0415 - as above
        from hera_specon.records.tracked import tracked_record  # noqa: PLC0415
        from hera_specon.report.page import live_body  # noqa: PLC0415

        if self._uri is None:
            message = "the charts come from MLflow: forward its port, and name it with --mlflow-tracking-uri"
            raise ReadOnlyError(message)
        return live_body(tracked_record(CarefulClient(self._uri), self._name))
