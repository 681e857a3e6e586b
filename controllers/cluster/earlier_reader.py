"""What the sweeps of a campaign learn from earlier ones: read once, on the thread that reads all metrics."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.after_sweeps import AfterSweeps
from controllers.core.earlier import Earlier, EarlierTrial
from controllers.core.errors import SearchError
from controllers.core.model import Sample, TrialId
from controllers.search import what_is_learnt
from controllers.tracking.access import shown
from controllers.tracking.bounded_answers import TooMuchError
from controllers.tracking.earlier_sweeps import Wanted, read_earlier
from controllers.worlds.argo.meaning.view import Campaign

PATIENCE_S: Final = 60.0
"""Seconds for which a search waits for an MLflow that does not answer; then it begins without."""


class EarlierReader:
    """Reads what was learnt before. A metric source by its form, whose samples are none: so it gets its turn as all do.

    Args:
        client: A client of the tracking server.
        campaign: Tells the campaign as it is now; Argo shows some of its sweeps late.
        tell: Gets a line for people.
        clock: Gives seconds that never go back.
    """

    def __init__(
        self,
        client: MlflowClient,
        campaign: Callable[[], Campaign],
        tell: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._campaign = campaign
        self._tell = tell
        self._clock = clock
        self._give_up: dict[str, float] = {}
        self._known: dict[str, tuple[EarlierTrial, ...]] = {}
        self.news = False
        """Whether something was read that nobody has looked at; the code that looks sets it back."""

    def earlier(self) -> Earlier:
        """Return what is known by now; ``pending`` while a sweep's is still to be read."""
        known = dict(self._known)
        return Earlier(known, pending=not self._wanted().keys() <= known.keys())

    def poll(self) -> Mapping[TrialId, Sample]:
        """Read for the sweeps for which that was not done yet; return nothing."""
        for sweep, after in self._wanted().items():
            if sweep not in self._known:
                self._read(sweep, after)
        return {}

    def _wanted(self) -> Mapping[str, AfterSweeps]:
        campaign = self._campaign()
        return {} if campaign.finished else {sweep: after for sweep, after in campaign.after.items() if after}

    def _read(self, sweep: str, after: AfterSweeps) -> None:
        campaign = self._campaign()
        give_up = self._give_up.setdefault(sweep, self._clock() + PATIENCE_S)
        wanted = Wanted(
            after=after,
            experiment=campaign.sweeps.get(f"{campaign.sweep_uid}.{sweep}", ""),
            uid=campaign.sweep_uid,
            began_epoch_s=campaign.created_epoch_s,
            namespace=campaign.namespace,
        )
        try:
            found = read_earlier(self._client, wanted)
        except (MlflowException, OSError, TooMuchError) as error:
            if self._clock() < give_up:
                return
            self._tell(f"sweep {sweep} learns nothing from earlier ones: {shown(str(error))[:200]}")
            self._known[sweep], self.news = (), True
            return
        if found.unknown:
            names = ", ".join(map(repr, found.unknown))
            self._tell(f"sweep {sweep} is to learn from {names}; MLflow has no such sweep that its namespace may read")
        self._known[sweep], self.news = found.trials, True
        try:
            self._tell(f"sweep {sweep}: {what_is_learnt(found.trials, after.search)}")
        except SearchError as error:
            self._tell(f"sweep {sweep}: {error}")
