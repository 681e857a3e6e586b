"""Where few trials can use all cores, only the likeliest train: they end sooner, and tell sooner what is left. Pure.

Cores that a policy behind this one hands out, or the kernel, go to those that run. A trial that is hardly likely to be
the best takes them from the others. But how many cores a trial can use is learnt only by giving it more. So it counts
for at most ``GROWTH`` times what it was seen to use, or asks for: the number of trials that train falls step by step,
and where they turn out to be unable to use more, others start again.
"""

import math
from collections.abc import Sequence
from typing import Final

from controllers.core.model import Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.most_cores import GROWTH
from controllers.policies.kit.work_left import SweepMeasurements, most_cores

ENOUGH: Final = 0.9
"""Part of what a trial asks for that must be left for it to train."""
_LEAVING: Final = frozenset({Phase.SUSPENDING, Phase.STOPPING})


class LeadingTrials:
    """Whose training leaves no cores for others.

    Where trials hold devices, and where nodes can come, cores are not what is short: then it holds nobody back.

    Args:
        snapshot: What there is.
        known: What was measured in it.
        in_order: The running trials, the likeliest first.
    """

    def __init__(self, snapshot: Snapshot, known: SweepMeasurements, in_order: Sequence[Trial]) -> None:
        self._bound = not snapshot.kinds and not any(trial.devices.counts for trial in snapshot.unended)
        self._most = most_cores(snapshot, known) if self._bound else {}
        self._used = {trial.id: known.trials[trial.id].used for trial in snapshot.unended} if self._bound else {}
        # What programs of others take changes from look to look, and nobody is suspended for that.
        in_all = math.fsum(node.cpu for node in snapshot.nodes if node.ready)
        self._before: dict[TrialId, Trial] = {}
        left, last = in_all, None
        for trial in in_order:
            if last is not None and left < ENOUGH * _asked(trial):
                self._before[trial.id] = last
            else:
                left, last = left - self._reach(trial), trial
        busy = (trial for trial in snapshot.unended if not trial.waits and trial.phase not in _LEAVING)
        self._left = in_all - math.fsum(map(self._reach, busy))

    def before(self, trial: Trial) -> Trial | None:
        """Return the last of the likelier ones that can use all cores, None where they leave some for ``trial``."""
        return self._before.get(trial.id) if self._bound else None

    def leave_room(self, trial: Trial) -> bool:
        """Return whether cores are left for a trial that waits, and count it as running if so."""
        if self._bound and self._left < ENOUGH * _asked(trial):
            return False
        self._left -= self._reach(trial)
        return True

    def _reach(self, trial: Trial) -> float:
        """Return how many cores a trial may come to use."""
        asked = _asked(trial)
        if not self._bound or trial.gang:
            return asked
        return min(self._most[trial.id].cores, GROWTH * max(self._used[trial.id], asked))


def _asked(trial: Trial) -> float:
    return trial.base_cpu * trial.workers
