"""How the devices of a node are shared in virtual time: which trials take turns on which, and how fast they are."""

from collections.abc import Iterable

from controllers.core.model import TrialId
from controllers.worlds.simulated.trial_run import TrialRun
from controllers.worlds.simulated.workload import NodeSpec

Slots = tuple[tuple[str, int], ...]
"""The devices of a trial: each by its kind and its number on the node."""


class DeviceSharing:
    """Knows which trial is on which device of a node, where each is advertised several times.

    A trial comes to the device with the fewest others and stays there, as NVIDIA's device plugin gives out the replicas
    of time-slicing. Those of a device take turns: each gets an equal part of its time, as far as it has a use for it.

    Args:
        spec: the node.
    """

    def __init__(self, spec: NodeSpec) -> None:
        self._spec = spec
        self._slots: dict[TrialId, Slots] = {}

    def speeds(self, runs: Iterable[TrialRun]) -> dict[TrialId, float]:
        """Return how many times as fast its devices let each of ``runs``, which are on the node, train that has any."""
        holding = {run.spec.id: run for run in runs if run.spec.devices.counts}
        if self._spec.replicas == 1:
            return dict.fromkeys(holding, self._spec.device_speed)
        self._slots = {name: slots for name, slots in self._slots.items() if name in holding}
        for name, run in holding.items():
            if name not in self._slots:
                self._slots[name] = self._given_to(run)
        on_slot: dict[tuple[str, int], list[TrialRun]] = {}
        for name, slots in self._slots.items():
            for slot in slots:
                on_slot.setdefault(slot, []).append(holding[name])
        parts = {slot: _parts(sharing) for slot, sharing in on_slot.items()}
        return {
            name: self._spec.device_speed * min(parts[slot][name] for slot in slots)
            for name, slots in self._slots.items()
        }

    def _given_to(self, run: TrialRun) -> Slots:
        """Return the devices that a new trial gets: of each kind, those with the fewest others."""
        taken: dict[tuple[str, int], int] = {}
        for slot in (slot for slots in self._slots.values() for slot in slots):
            taken[slot] = taken.get(slot, 0) + 1
        slots: list[tuple[str, int]] = []
        for kind, count in run.spec.devices.counts:
            for _ in range(count * run.on(self._spec.name)):
                numbers = range(self._spec.devices.count(kind) // self._spec.replicas)
                least = min(numbers, key=lambda number: (taken.get((kind, number), 0), number))
                taken[kind, least] = taken.get((kind, least), 0) + 1
                slots.append((kind, least))
        return tuple(slots)


def _parts(sharing: list[TrialRun]) -> dict[TrialId, float]:
    """Return the speed of each trial of a device, as a part of that which it has alone."""
    computing = [run for run in sharing if run.computes]
    parts = {run.spec.id: 1.0 for run in sharing}
    left = 1.0
    for place, run in enumerate(sorted(computing, key=lambda run: run.spec.device_use)):
        got = min(run.spec.device_use, left / (len(computing) - place))
        parts[run.spec.id] = got / run.spec.device_use
        left -= got
    return parts
