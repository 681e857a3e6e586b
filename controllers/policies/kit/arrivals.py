"""Whether more trials are to be expected, as the gaps between submissions go. Pure."""

import math
from collections.abc import Sequence
from typing import Final

from controllers.core.model import Snapshot

KEPT_SUBMISSIONS: Final = 16


def with_submissions(before: Sequence[float], snapshot: Snapshot) -> tuple[float, ...]:
    """Return when the newest trials were submitted, rising: those of ``before``, and those of ``snapshot``."""
    return tuple(sorted({*before, *(trial.submitted_at for trial in snapshot.unended)}))[-KEPT_SUBMISSIONS:]


def arriving_until(submitted: Sequence[float]) -> float:
    """Return until when more trials are to be expected, as the gaps between submissions go; -inf where nothing tells.

    ``submitted`` is when the newest trials were submitted, rising.
    """
    if len(submitted) < 3:  # noqa: PLR2004 - one gap says nothing of how long gaps are
        return -math.inf
    return submitted[-1] + 3 * (submitted[-1] - submitted[0]) / (len(submitted) - 1)
