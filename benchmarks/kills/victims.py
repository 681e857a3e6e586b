"""What can be killed while a sweep runs, and how it comes back, as its keeper in a real cluster would bring it back."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, assert_never

from tests.cluster import node_cgroups
from tests.cluster.cluster import CONTROL
from tests.cluster.commands import ClusterError
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.controllers import ControllerProcess
from tests.cluster.sweeps.pods_seen import SeenPod
from tests.cluster.sweeps.tracking import Tracking

ARGO: Final = "workflow-controller"
API_SERVER: Final = "kube-apiserver"
_PROGRAM: Final = b"descent.py"
_EXECUTOR: Final = b"argoexec"


class Victim(StrEnum):
    """A kind of thing that is killed. The API server comes last: without it, nothing else could come back."""

    TRIAL = "a trial"
    LEADER = "the leader"
    KUBELET = "a kubelet"
    MLFLOW = "MLflow"
    ARGO = "Argo's controller"
    API_SERVER = "the API server"


@dataclass(frozen=True)
class KilledTrial:
    """A trial's attempt that was killed, and the step of the newest checkpoint that it had acknowledged by then."""

    trial: str
    pod_uid: str
    saved: int


@dataclass
class Killer:
    """Kills what one sweep leans on.

    Attributes:
        trials: the attempts that were killed.
    """

    bench: Bench
    workflow: Workflow
    tracking: Tracking
    replicas: Sequence[ControllerProcess]
    chance: random.Random
    trials: list[KilledTrial] = field(default_factory=list)

    @contextmanager
    def gone(self, victim: Victim) -> Iterator[bool]:
        """Kill one, and let it come back in the end; yields whether there was one to kill."""
        match victim:
            case Victim.TRIAL:
                yield self._kill_trial()
            case Victim.LEADER:
                with self._without_leader():
                    yield True
            case Victim.KUBELET:
                with self._without_kubelet():
                    yield True
            case Victim.MLFLOW:
                self.tracking.stop()
                try:
                    yield True
                finally:
                    self.tracking.start()
            case Victim.ARGO | Victim.API_SERVER:
                self.bench.cluster.machine(CONTROL).kill(ARGO if victim is Victim.ARGO else API_SERVER)
                try:
                    yield True
                finally:
                    self.revive()
            case _:
                assert_never(victim)

    def revive(self) -> None:
        """Start again what has ended, as a kubelet does: some programs end when the API server is away."""
        cluster = self.bench.cluster
        control, plane = cluster.machine(CONTROL), cluster.control_plane
        if not control.is_component_running(API_SERVER):
            plane.start_api_server()
        plane.wait_until_ready()
        for component, start in (
            ("kube-controller-manager", plane.start_controller_manager),
            ("kube-scheduler", plane.start_scheduler),
            (ARGO, cluster.argo.start_controller),
        ):
            if not control.is_component_running(component):
                start()
        for replica in self.replicas:
            if not replica.running:
                replica.start()

    def ask_for_a_move(self) -> None:
        """Ask for a move of any trial, a moment before something is killed."""
        running = self.bench.running(self.workflow)
        if not running:
            return
        pod = self.chance.choice(list(running.values()))
        # What is away may be the very server that is asked.
        with contextlib.suppress(Exception):
            self.bench.mark_move(pod, self.bench.another_node(pod))
        time.sleep(self.chance.uniform(0, 2))

    @contextmanager
    def _without_leader(self) -> Iterator[None]:
        leader = next((one for one in self.replicas if one.metric("specon_is_leader") == 1.0), self.replicas[0])
        leader.kill()
        try:
            yield
        finally:
            # The repair of something else may have started it already.
            if not leader.running:
                leader.start()

    @contextmanager
    def _without_kubelet(self) -> Iterator[None]:
        cluster = self.bench.cluster
        node = self.chance.choice(cluster.node_names)
        cluster.kill_kubelet(node)
        try:
            yield
        finally:
            cluster.start_kubelet(node)

    def _kill_trial(self) -> bool:
        running = self.bench.running(self.workflow)
        if not running:
            return False
        trial = self.chance.choice(sorted(running))
        folders = (self.bench.trial_folder(self.workflow, trial) / "checkpoints").glob("step-*")
        saved = max((int(folder.name.removeprefix("step-")) for folder in folders), default=0)
        if not _killed(running[trial]):
            return False
        self.trials.append(KilledTrial(trial, running[trial].uid, saved))
        return True


def _killed(pod: SeenPod) -> bool:
    """Kill a pod's training program by its id on this machine; return whether it was there."""
    try:
        procs = node_cgroups.pod_folder(pod.uid) / pod.container_id / "cgroup.procs"
        for pid in procs.read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            # Argo's executor has the program's words among its own.
            if not words[0].endswith(_EXECUTOR) and any(word.endswith(_PROGRAM) for word in words):
                os.kill(int(pid), signal.SIGKILL)
                return True
    except (OSError, ClusterError):
        return False
    return False
