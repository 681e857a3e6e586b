"""Cores that stand idle: a trial that waits at a rung may train on where nobody else can use them. Pure.

Towards the end of a sweep fewer trials go on than there are places. Trials that wait can train there meanwhile. Many of
those that the rule lets past later have then come far already, and end no later than the sweep. It takes nothing from
the others: only cores that they are known to be unable to use count as idle (``kit.work_left``).
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from controllers.core.actions import Place
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Capacity, RequestShape, request_shape
from controllers.policies.kit.most_cores import Most

ENOUGH: Final = 0.9
"""Part of what a trial asks for that must be idle: what the others use is measured, and never quite exact."""
_LEAVING: Final = frozenset({Phase.SUSPENDING, Phase.STOPPING})


class IdleCores:
    """The cores that those leave which go on: on each node, and in all, as they may come to move.

    Args:
        snapshot: What there is.
        most: How many cores each trial that has not ended can use.
        waiting: Running trials that have reached a rung which they may not go beyond. All others go on.
        starting: Those of the others that have reached such a rung, too: they were given idle cores just before.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        most: Mapping[TrialId, Most],
        waiting: Collection[TrialId],
        starting: Collection[TrialId],
    ) -> None:
        self._capacity = Capacity.of(snapshot)
        self._on = {node.name: node.supplied for node in snapshot.nodes if node.ready}
        self._in_all = math.fsum(self._on.values())
        self._settled = True
        for trial in snapshot.unended:
            if trial.id in waiting or trial.waits or trial.withheld or trial.phase in _LEAVING:
                continue  # what it uses is idle, or will be soon
            # Were more counted of one that starts on idle cores, it would drive away another that uses such already,
            # and be driven away by the next.
            cores = trial.base_cpu if trial.id in starting else most[trial.id].cores
            nodes = {*trial.nodes, *trial.destination}
            for name in nodes & self._on.keys():
                self._on[name] -= cores
            self._in_all -= cores
            # A trial without nodes was placed and does not run yet: nobody knows whose cores it will use.
            self._settled &= bool(nodes)

    def kept(self, trials: Iterable[Trial], new: Collection[TrialId]) -> Iterator[Trial]:
        """Yield those of the running ``trials`` for which there are idle cores where they are, the first first.

        Those that are ``new`` there stay in any case.
        """
        there = [(trial, trial.node) for trial in trials if trial.node is not None]
        for trial, node in there:
            if trial.id in new:
                self._take(trial, node)
        for trial, node in there:
            if trial.id not in new:
                if not self._enough(trial, node):
                    continue
                self._take(trial, node)
            yield trial

    def places(self, trials: Sequence[Trial]) -> Iterator[tuple[Trial, NodeName]]:
        """Yield those of the waiting ``trials`` for which cores are idle, each with the node that it fills up best."""
        # Placing a trial only takes room away, so what does not fit now will not fit later in this decision.
        unfit: set[RequestShape] = set()
        for trial in trials if self._settled else ():
            shape = request_shape(trial)
            if shape in unfit:
                continue
            roomy = [name for name in self._on if self._enough(trial, name) and self._capacity.fits(trial, name)]
            if not roomy:
                unfit.add(shape)
                continue
            node = min(roomy, key=lambda name: (self._on[name], name))
            self._take(trial, node)
            self._capacity.apply(Place.on(node, trial))
            yield trial, node

    def _enough(self, trial: Trial, node: NodeName) -> bool:
        return not trial.gang and min(self._on.get(node, 0.0), self._in_all) >= ENOUGH * trial.base_cpu

    def _take(self, trial: Trial, node: NodeName) -> None:
        self._on[node] = self._on.get(node, 0.0) - trial.base_cpu
        self._in_all -= trial.base_cpu
