"""One measurement from nothing to nothing: a cluster is brought up, filled, steered, looked at, and taken away."""

import logging
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.progress import Progress

from benchmarks.scale.cluster import Filler, RunningSweep, tracked
from benchmarks.scale.control_plane import ControlPlane
from benchmarks.scale.findings import Findings, Load, summed_up
from benchmarks.scale.kubelet_door import KubeletDoor
from benchmarks.scale.moving import Movers
from benchmarks.scale.profiling import Profiler
from benchmarks.scale.size import NAMESPACE, Size
from benchmarks.scale.steering import Reading, Steering
from benchmarks.scale.tracking import Tracking
from controllers.worlds.argo.calls.api import EVENTS, KubeApi

_READ_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class _Stage:
    """All that runs beside the controller."""

    plane: ControlPlane
    tracking: Tracking
    sweeps: Sequence[RunningSweep]


def measure(size: Size, progress: Progress, profile: Path | None = None, logs: Path | None = None) -> Findings:
    """Measure the controller over a cluster of this size.

    Args:
        size: of the cluster.
        progress: shows how far it is.
        profile: where to write a profile of the controller, in py-spy's raw form.
        logs: a folder to copy every part's log to.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="controller-at-scale-")))
        if logs is not None:
            stack.callback(_keep_logs, folder, logs)
        plane = stack.enter_context(ControlPlane(folder, progress.console.print))
        tracking = stack.enter_context(Tracking(folder / "mlflow", size.report_every))
        filler = Filler(plane.api, size, progress)
        filler.prepare(plane.kubelet_port)
        sweeps = filler.sweeps(tracking.uri)
        filler.wait_running(plane.tend_kwok)
        tracking.begin(tracked(sweeps))
        return _steered(_Stage(plane, tracking, sweeps), size, progress, profile)


def _steered(stage: _Stage, size: Size, progress: Progress, profile: Path | None) -> Findings:
    plane, tracking = stage.plane, stage.tracking
    movers = Movers(plane.api, size, stage.sweeps)
    steering = Steering(plane.folder, plane.kubeconfig, tracking.uri, size)
    with KubeletDoor(plane.kubelet_port, plane.certificate, movers.left), movers, steering:
        began = time.monotonic()
        with Profiler(steering.pid, profile):
            first = steering.wait_until_it_steers()
            readings, load = _readings(stage, first, steering, size, progress)
        moves = {"moves_completed": movers.moves, "moves_told": _moves_told(plane.api)}
        rest = {**moves, "points": tracking.points, "load": load}
        return summed_up(size, readings, first.at - began, rest)


def _readings(
    stage: _Stage, first: Reading, steering: Steering, size: Size, progress: Progress
) -> tuple[list[Reading], Load]:
    bar = progress.add_task("looking on", total=size.seconds)
    readings, loads, before = [first], [os.getloadavg()[0]], _cpu_times(stage)
    while readings[-1].at - first.at < size.seconds:
        time.sleep(_READ_EVERY_S)
        reading = steering.read()
        if reading is None:
            logging.getLogger(__name__).warning("the controller did not answer")
            continue
        readings.append(reading)
        loads.append(os.getloadavg()[0])
        progress.update(bar, completed=min(size.seconds, reading.at - first.at))
    seconds, after = readings[-1].at - first.at, _cpu_times(stage)
    cores = {name: (after[name] - before[name]) / seconds for name in before}
    return readings, Load(statistics.mean(loads), cores)


def _moves_told(api: KubeApi) -> int:
    pages = api.pages(EVENTS.path(NAMESPACE), {"fieldSelector": "reason=Moved"}, 500)
    return sum(len(page["items"]) for page in pages)


def _cpu_times(stage: _Stage) -> Mapping[str, float]:
    pids = {**stage.plane.pids, "mlflow": stage.tracking.pid, "benchmark": os.getpid()}
    return {name: _cpu_time(psutil.Process(pid), with_children=name == "mlflow") for name, pid in pids.items()}


def _cpu_time(process: psutil.Process, *, with_children: bool) -> float:
    family = [process, *(process.children(recursive=True) if with_children else [])]
    return sum(sum(one.cpu_times()[:2]) for one in family)


def _keep_logs(folder: Path, logs: Path) -> None:
    logs.mkdir(parents=True, exist_ok=True)
    for log in folder.rglob("*.log"):
        shutil.copy(log, logs)
