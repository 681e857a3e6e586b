"""When trials and the sweep will end, as far as that can be foreseen: shown to people, never acted on. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controllers.core.model import TrialId

WITHIN: Final = 0.9
"""Part of the forecasts whose range should hold what comes true."""
_NEWS: Final = 0.25
"""Part of a range's width by which one of its figures must change to be worth telling."""
_LEAST_NEWS_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class EndRange:
    """When something will end, in seconds of the sweep's clock: from ``low`` to ``high``, ``likely`` about halfway."""

    low: float
    likely: float
    high: float

    def left(self, now: float) -> "EndRange":
        """Return how many seconds that is from ``now``, none below 0."""
        return EndRange(*(max(0.0, at - now) for at in (self.low, self.likely, self.high)))

    def holds(self, at: float) -> bool:
        """Return whether what ended at ``at`` came true within the range."""
        return self.low <= at <= self.high

    def is_news_after(self, told: "EndRange | None") -> bool:
        """Return whether it says something else than ``told`` did, and not just something more exact."""
        if told is None:
            return True
        least = max(_LEAST_NEWS_S, _NEWS * (told.high - told.low))
        changes = (self.low - told.low, self.likely - told.likely, self.high - told.high)
        return any(abs(change) > least for change in changes)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was foreseen ``at`` seconds of the sweep's clock.

    ``end`` is that of everything, None while it is not known. ``sweeps`` are the ends of each sweep by its id, where a
    workflow has several, ``trials`` those of each trial that was submitted and has not ended.
    """

    at: float
    end: EndRange | None = None
    sweeps: Mapping[str, EndRange] = field(default_factory=dict)
    trials: Mapping[TrialId, EndRange] = field(default_factory=dict)
