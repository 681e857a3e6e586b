"""The simulated world behind the bench: waiting for something moves the virtual clock on."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from controllers.core.devices import Devices
from controllers.core.model import NodeName, TrialId
from controllers.core.parameters import parameters_in
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, WorkerExchange, Workload
from controllers.worlds.simulated.world import SimulatedMetrics, SimulatedWorld
from tests.contract.bench import DEVICE, Behaviour, DeviceBench, GangBench

_NODES = (NodeName("node-1"), NodeName("node-2"))
_STEP_S = 0.1
_COSTS = Costs(
    start_s=0.2, start_cpu_s=0.01, leave_s=0.1, next_attempt_s=0.3, restore_s=0.05, retry_s=0.3, resize_s=0.1,
    grace_s=2.0,
)  # fmt: skip


class SimulatedBench(DeviceBench, GangBench):
    """Two nodes in virtual time."""

    world: SimulatedWorld

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._behaviours: Mapping[str, Behaviour] = {}
        self._steps: dict[str, list[int]] = {}
        self._attempts: dict[str, list[tuple[int, str]]] = {}
        self._devices: tuple[int, ...] = (0, 0)

    @property
    def nodes(self) -> Sequence[NodeName]:
        """The two nodes."""
        return _NODES

    @property
    def state_folder(self) -> Path:
        """Stays empty: nothing is written."""
        return self._folder

    def give_devices(self, *counts: int) -> None:
        """Let each node have so many devices."""
        self._devices = counts

    def submit(self, *, gated: bool = False, **behaviours: Behaviour) -> None:
        """Begin a world with these trials."""
        self._behaviours = behaviours
        trials = tuple(_spec(name, behaviour) for name, behaviour in behaviours.items())
        nodes = tuple(
            NodeSpec(name, 0.4, 1e9, devices=Devices.of({DEVICE: count}))
            for name, count in zip(_NODES, self._devices, strict=True)
        )
        workload = Workload(trials, nodes)
        self.world = SimulatedWorld(Scenario(workload, _COSTS), gated=gated)
        self._source = SimulatedMetrics(self.world, delay_s=0.0)

    def drive(self) -> bool:
        """Go half a step on, noting what every trial logs and where its attempts begin."""
        changed = self.world.advance(self.world.now + _STEP_S / 2)
        for name, behaviour in self._behaviours.items():
            self._note(name)
            if (
                self.phase(name) is not None
                and self.trial(name).steady
                and self.trial(name).attempt <= behaviour.failures
            ):
                self.world.fail(_id(name))
        return changed

    def kill_attempt(self, name: str) -> None:
        """End the trial's present attempt as SIGKILL does."""
        self.world.fail(_id(name))

    def crew(self, name: str) -> Sequence[str]:
        """Return the node of each worker of the trial's present attempt, by rank."""
        return self.trial(name).nodes

    def kill_worker(self, name: str, rank: int) -> None:
        """End the trial's present attempt, as the end of any of its workers does."""
        assert rank < len(self.trial(name).nodes)
        self.world.fail(_id(name))

    def restart_controller(self) -> None:
        """Nothing of a controller's is lost: the world is the cluster, which lives on."""

    def close(self) -> None:
        """Nothing is left over."""

    def steps(self, name: str) -> list[int]:
        """Return the steps that were seen to be logged, in order."""
        return self._steps.get(name, [])

    def attempts(self, name: str) -> list[tuple[int, str]]:
        """Return number and node of each attempt that was seen to run."""
        return self._attempts.get(name, [])

    def _note(self, name: str) -> None:
        sample, steps = self._source.poll().get(_id(name)), self._steps.setdefault(name, [])
        if sample is not None and (not steps or sample.step - 1 != steps[-1]):
            steps += range(min(len(steps), sample.step - 1), sample.step)
        trial, attempts = self.world.trial(_id(name)), self._attempts.setdefault(name, [])
        if trial is not None and trial.node is not None and trial.attempt > len(attempts):
            attempts.append((trial.attempt, trial.node))


def _id(name: str) -> TrialId:
    return TrialId(f"uid.sweep.{name}")


def _spec(name: str, behaviour: Behaviour) -> TrialSpec:
    """Return a trial that can use a tenth of a core and saves after every step."""
    return TrialSpec(
        id=_id(name),
        submitted_at=0.0,
        work_s=behaviour.steps * _STEP_S,
        reports=tuple(CurvePoint((step + 1) * _STEP_S, 1.0 / (step + 1)) for step in range(behaviour.steps)),
        cpu=int(behaviour.cpu.removesuffix("m")) / 1000,
        memory=16 * 1024**2,
        speedup=Speedup.linear(0.1),
        retries=behaviour.retries,
        checkpoint_every_s=_STEP_S,
        deaf=behaviour.deaf,
        devices=Devices.of({DEVICE: behaviour.devices}),
        parameters=() if behaviour.search else parameters_in(behaviour.params),
        search=behaviour.search,
        sweep="sweep",
        min_workers=behaviour.min_workers,
        max_workers=behaviour.workers,
        exchange=WorkerExchange(_STEP_S),
    )
