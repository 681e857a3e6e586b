"""Experiments of ours with whole devices, such as GPUs: V1 to V3. There is more to train than devices to train it on.

Four nodes have 16 cores and four devices each. A trial holds one device and uses the two cores that it requests, so
there is nothing to share: order and placement are all. Lengths lie between one and twenty minutes, short ones being as
likely as long ones by their logarithm. They follow from a hyperparameter, the width, but for a tenth. In V1 all 60
trials are submitted at once. In V2 they come faster than they can be trained, at first. In V3, trials that need no
device train beside them, on the cores that are left.
"""

from collections.abc import Sequence
from functools import partial
from math import exp, log
from typing import Final

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.experiments.arrivals import AllAtOnce, ArrivalPattern, Poisson, generator
from controllers.lab.simulation.experiments.experiment import OwnExperiment, Published
from controllers.lab.simulation.experiments.jobs import NODE_CORES, VAE
from controllers.worlds.simulated.workload import NodeSpec, Speedup, TrialSpec, Workload

NODES: Final = 4
DEVICES: Final = 4
"""Of each node."""
TRIALS: Final = 60
LONE_S: Final = (60.0, 1200.0)
LEAST_WIDTH: Final = 64.0
"""Of a trial of the least length."""
NOISE: Final = 0.1
"""Standard deviation of the logarithm of a length beside its width."""
CORES: Final = 2.0
"""Requested and used by a trial with a device."""
ARRIVALS: Final = Poisson(20.0)
"""Sixteen devices train a trial every 24 seconds."""
REPORTS: Final = 100
MIXED: Final = 40
"""Trials of V3 with a device, and as many without."""
REQUEST_WITHOUT: Final = 1.0
CORES_WITHOUT: Final = 8.0
"""Cores that a trial without a device can use."""
GPU: Final = "nvidia.com/gpu"


def device_workload(name: str, arrivals: ArrivalPattern, seed: int) -> Workload:
    """Return the workload of ``seed``: trials with one device each."""
    times = arrivals.times(TRIALS, generator(seed, name, "arrivals"))
    return _workload([_trial(f"job-{number:02d}", at, name, seed) for number, at in enumerate(times, start=1)])


def mixed_workload(name: str, seed: int) -> Workload:
    """Return the workload of ``seed``: trials with a device and trials without, in turn, all at once."""
    trials: list[TrialSpec] = []
    for number in range(1, MIXED + 1):
        trials.append(_trial(f"gpu-{number:02d}", 0.0, name, seed))
        trials.append(_trial(f"cpu-{number:02d}", 0.0, name, seed, devices=0))
    return _workload(trials)


def _trial(trial: str, at: float, experiment: str, seed: int, devices: int = 1) -> TrialSpec:
    chance = generator(seed, experiment, trial)
    work = exp(chance.uniform(*map(log, LONE_S)))
    reports = VAE.reports(work, REPORTS, chance)
    width = round(LEAST_WIDTH * work / LONE_S[0] * exp(chance.gauss(0.0, NOISE)))
    return TrialSpec(
        id=TrialId(trial),
        submitted_at=at,
        work_s=work,
        reports=reports,
        cpu=CORES if devices else REQUEST_WITHOUT,
        speedup=Speedup.linear(CORES if devices else CORES_WITHOUT),
        devices=Devices.of({GPU: devices}) if devices else NO_DEVICES,
        parameters=(("width", float(width)),),
    )


def _workload(trials: Sequence[TrialSpec]) -> Workload:
    names = (NodeName(f"worker-{number}") for number in range(1, NODES + 1))
    nodes = (NodeSpec(name, NODE_CORES, devices=Devices.of({GPU: DEVICES})) for name in names)
    return Workload(tuple(trials), tuple(nodes))


_POLICIES: Final = tuple(map(Published, ("default", "ahead")))
_WHERE: Final = f"{NODES} nodes with {DEVICES} devices"
DEVICE_EXPERIMENTS: Final = (
    OwnExperiment(
        "V1",
        f"{TRIALS} trials with a device each, all at once, {_WHERE}",
        partial(device_workload, "V1", AllAtOnce()),
        published=_POLICIES,
    ),
    OwnExperiment(
        "V2",
        f"{TRIALS} trials with a device each, one every {ARRIVALS.mean_interval:g} s, {_WHERE}",
        partial(device_workload, "V2", ARRIVALS),
        published=_POLICIES,
    ),
    OwnExperiment(
        "V3",
        f"{MIXED} trials with a device and {MIXED} without, all at once, {_WHERE}",
        partial(mixed_workload, "V3"),
        published=_POLICIES,
    ),
)
