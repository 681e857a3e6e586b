"""Experiments of ours with devices, such as GPUs: V1 to V6. There is more to train than devices to train it on.

Four nodes have 16 cores and four devices each. A trial holds one device and uses the two cores that it requests, so
there is nothing to share: order and placement are all. Lengths lie between one and twenty minutes, short ones being as
likely as long ones by their logarithm. They follow from a hyperparameter, the width, but for a tenth. In V1 all 60
trials are submitted at once. In V2 they come faster than they can be trained, at first. In V3, trials that need no
device train beside them, on the cores that are left.

In V4 the devices of two of the nodes are 2.5 times as fast as those of the other two, as an A100's beside a T4's.
In V5 each device is advertised as four, and trials that share one take turns on it: each has a use for all of its time,
and in V5-light for 40 % of it.
In V6 devices are cut into partitions of two sizes, and a trial asks for one of a size: those that ask for a large one
are four times as long, as their authors know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
FASTER: Final = 2.5
"""Speed of the fast devices of V4, as a multiple of the slow ones'."""
MODELS: Final = {"Tesla-T4": 1.0, "NVIDIA-A100-PCIE-40GB": FASTER}
SHARED: Final = "nvidia.com/gpu.shared"
REPLICAS: Final = 4
"""As how many each device of V5 is advertised."""
SHARED_DEVICES: Final = 2
"""Of each node of V5."""
SHARED_CORES: Final = 1.0
LIGHT_USE: Final = 0.4
"""Part of a device's time that a trial of V5-light wants."""
SMALL: Final = "nvidia.com/mig-1g.5gb"
LARGE: Final = "nvidia.com/mig-3g.20gb"
PARTITIONS: Final = {SMALL: 4, LARGE: 2}
"""Of each node of V6: two GPUs of seven slices, each cut into one part of three and two or more of one."""
LARGER: Final = 4.0
"""Lone seconds of V6's trials with a large partition, as a multiple of the others'."""


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


def unlike_workload(name: str, arrivals: ArrivalPattern, seed: int) -> Workload:
    """Return the workload of ``seed``: trials with one device each, half of the nodes with fast ones."""
    workload = device_workload(name, arrivals, seed)
    models = list(MODELS)
    nodes = [
        replace(node, device_model=model, device_speed=MODELS[model])
        for node, model in ((node, models[place % len(models)]) for place, node in enumerate(workload.nodes))
    ]
    return Workload(workload.trials, tuple(nodes))


def shared_workload(name: str, use: float, seed: int) -> Workload:
    """Return the workload of ``seed``: trials that share devices, each with a use for so much of the time of one."""
    shared = Devices.of({SHARED: 1})
    trials = [
        replace(trial, devices=shared, device_use=use, cpu=SHARED_CORES, speedup=Speedup.linear(SHARED_CORES))
        for trial in device_workload(name, AllAtOnce(), seed).trials
    ]
    return _workload(trials, {SHARED: SHARED_DEVICES * REPLICAS}, replicas=REPLICAS)


def partitioned_workload(name: str, seed: int) -> Workload:
    """Return the workload of ``seed``: every third trial asks for a large partition, the others for a small one."""
    trials: list[TrialSpec] = []
    for place, trial in enumerate(device_workload(name, AllAtOnce(), seed).trials):
        large = place % 3 == 0
        longer = LARGER if large else 1.0
        trials.append(
            replace(
                trial,
                devices=Devices.of({LARGE if large else SMALL: 1}),
                work_s=trial.work_s * longer,
                reports=tuple(replace(report, work_s=report.work_s * longer) for report in trial.reports),
            )
        )
    return _workload(trials, PARTITIONS)


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


def _workload(trials: Sequence[TrialSpec], devices: Mapping[str, int] | None = None, replicas: int = 1) -> Workload:
    names = (NodeName(f"worker-{number}") for number in range(1, NODES + 1))
    each = Devices.of(devices or {GPU: DEVICES})
    nodes = (NodeSpec(name, NODE_CORES, devices=each, replicas=replicas) for name in names)
    return Workload(tuple(trials), tuple(nodes))


_POLICIES: Final = tuple(map(Published, ("default", "ahead")))
_BESIDE: Final = tuple(map(Published, ("default", "ahead", "fifo")))
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
    OwnExperiment(
        "V4",
        f"{TRIALS} trials with a device each, all at once, {NODES} nodes with {DEVICES}, "
        f"those of half of the nodes {FASTER:g} times as fast",
        partial(unlike_workload, "V4", AllAtOnce()),
        published=_BESIDE,
    ),
    OwnExperiment(
        "V5",
        f"{TRIALS} trials that share devices, all at once, {NODES} nodes with {SHARED_DEVICES}, each as {REPLICAS}",
        partial(shared_workload, "V5", 1.0),
        published=_BESIDE,
    ),
    OwnExperiment(
        "V5-light",
        f"V5, where a trial has a use for {LIGHT_USE:.0%} of a device's time",
        partial(shared_workload, "V5", LIGHT_USE),
        published=_BESIDE,
    ),
    OwnExperiment(
        "V6",
        f"{TRIALS} trials with a partition each, small or large, all at once, {NODES} nodes with 4 small and 2 large",
        partial(partitioned_workload, "V6"),
        published=_BESIDE,
    ),
)
