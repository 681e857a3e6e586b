"""Sweeps on the real cluster: submitted as users do, steered by the real controller, seen through the API server."""

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from controllers.core import labels
from controllers.worlds.argo.calls.api import PODS, WORKFLOWS, KubeApi
from controllers.worlds.argo.calls.errors import NotFoundError, UnavailableError
from controllers.worlds.argo.calls.untrusted import at, text
from tests.cluster.cluster import CONTROL, Cluster
from tests.cluster.commands import ClusterError
from tests.cluster.kubectl import Kubectl
from tests.cluster.processes import wait_until
from tests.cluster.sweeps import descent, descent_sweep
from tests.cluster.sweeps.controllers import ROOT, ControllerProcess, environment
from tests.cluster.sweeps.namespace import controller_kubeconfig, sweep_namespace
from tests.cluster.sweeps.pods_seen import PodsSeen, SeenPod
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.tracking import AnyTracking

STARTS_WITHIN_S: Final = 90.0
ENDS_WITHIN_S: Final = 420.0


@dataclass(frozen=True)
class Workflow:
    """A submitted sweep; ``steps`` is how many steps each trial makes, ``rates`` has the learning rate of each."""

    name: str
    uid: str
    steps: int
    rates: tuple[float, ...]

    @property
    def trials(self) -> tuple[str, ...]:
        """The trials, as they are called within the sweep."""
        return tuple(f"t{number:03}" for number in range(len(self.rates)))


@dataclass
class Bench:
    """One namespace for one test, with all that a sweep needs.

    Attributes:
        folder: for logs; ``state`` in it is the trials' volume.
    """

    cluster: Cluster
    kubectl: Kubectl
    tracking: AnyTracking
    folder: Path
    api: KubeApi
    pods: PodsSeen
    _controllers: list[ControllerProcess] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The namespace's name."""
        return self.kubectl.namespace

    @property
    def state(self) -> Path:
        """What the trials see as their state root."""
        return self.folder / "state"

    def controller(self, policy: str = "default", *settings: str, elect: bool = False) -> ControllerProcess:
        """Return a controller of this namespace, not started yet, with more ``settings``; it ends with the test."""
        name = f"controller-{len(self._controllers)}"
        access = controller_kubeconfig(self.kubectl, self.folder / f"{name}.kubeconfig")
        arguments = ["--namespace", self.namespace, "--lease-namespace", self.namespace, "--kubeconfig", str(access)]
        arguments += ["--mlflow-tracking-uri", self.tracking.uri, "--policy", policy, "--interval", "1"]
        arguments += ["--leader-elect" if elect else "--no-leader-elect"]
        made = ControllerProcess((*arguments, *settings), self.folder / f"{name}.log", free_ports(2)[0])
        self._controllers.append(made)
        return made

    def close(self) -> None:
        """End the controllers and the watch."""
        for controller in self._controllers:
            controller.kill()
        self.pods.close()

    def submit(
        self, sweep: ModuleType = descent_sweep, *, policy: str | None = None, **settings: int | str
    ) -> Workflow:
        """Send a sweep as ``specon submit`` does, with these parameters of its workflow."""
        told = {name.replace("_", "-"): str(value) for name, value in settings.items()}
        arguments = ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.namespace, "--json"]
        arguments += ["--mlflow-tracking-uri", self.tracking.uri_for_pods]
        arguments += [] if policy is None else ["--policy", policy]
        for name, value in told.items():
            arguments += ["--parameter", f"{name}={value}"]
        command = [sys.executable, "-m", "hera_specon.cli", "submit", str(sweep.__file__), *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        created = json.loads(done.stdout)
        steps = int(told.get("steps", descent_sweep.SETTINGS["steps"]))
        return Workflow(created["name"], created["uid"], steps, sweep.RATES)

    def specon(self, *arguments: str) -> None:
        """Call a command of ours that asks something of a workflow."""
        access = ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.namespace]
        command = [sys.executable, "-m", "hera_specon.cli", *arguments, *access]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def workflow(self, workflow: Workflow) -> dict[str, Any]:
        """Return the workflow as the API server has it."""
        return self.api.get(WORKFLOWS.path(self.namespace, workflow.name))

    def phase(self, workflow: Workflow) -> str:
        """Return the workflow's phase; empty while the API server does not answer."""
        try:
            return text(self.workflow(workflow), "status", "phase")
        except UnavailableError:
            return ""

    def wait_for_end(self, workflow: Workflow, within_s: float = ENDS_WITHIN_S) -> None:
        """Wait until the workflow is over, however it ended."""
        self.wait(lambda: self.phase(workflow) in {"Succeeded", "Failed", "Error"}, "the workflow is over", within_s)

    def running(self, workflow: Workflow) -> Mapping[str, SeenPod]:
        """Return the newest pod of each trial whose main container runs."""
        newest = {pod.trial: pod for pod in self.pods.all(workflow.name)}
        return {trial: pod for trial, pod in newest.items() if pod.running}

    def wait_all_training(self, workflow: Workflow, steps: int = 5) -> None:
        """Wait until every trial has made its first steps."""
        self.wait(
            lambda: all(self.steps_done(workflow, trial) >= steps for trial in workflow.trials),
            f"every trial has made {steps} steps",
            STARTS_WITHIN_S,
        )

    def wait(self, condition: Callable[[], bool], what: str, within_s: float) -> None:
        """Wait for ``condition``; where it fails, the test fails with what there is to see."""
        try:
            wait_until(condition, what, within_s, interval=0.2)
        except ClusterError as error:
            message = f"{error}\n{self.story()}"
            raise AssertionError(message) from error

    def story(self) -> str:
        """Return what became of pods and workflows, and what was told of them, for a test that fails."""
        attempts = [
            f"{pod.trial} {pod.name} on {pod.node}: {pod.phase} {pod.exit_code}" for pod in self.pods.everywhere()
        ]
        now = self.kubectl("get", "pods,workflows", "--output", "wide")
        events = self.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp")
        return "\n".join(("all attempts ever seen:", *attempts, now, events))

    def trial_folder(self, workflow: Workflow, trial: str) -> Path:
        """Return the folder in which a trial keeps its state."""
        return self.state / f"{workflow.uid}.{descent_sweep.NAME}.{trial}"

    def steps_done(self, workflow: Workflow, trial: str) -> int:
        """Return how many steps a trial has logged on its disk."""
        points = self.trial_folder(workflow, trial) / "points.jsonl"
        return points.read_bytes().count(b'"key": "loss"') if points.exists() else 0

    def newest_checkpoint(self, workflow: Workflow, trial: str) -> Path:
        """Return the folder of a trial's newest checkpoint."""
        return max((self.trial_folder(workflow, trial) / "checkpoints").glob("step-*"))

    def logs(self, pod: SeenPod) -> str:
        """Return what a pod's main container wrote."""
        return self.kubectl("logs", pod.name, "--container", "main")

    def resumed_at(self, pod: SeenPod) -> int:
        """Return the first step that an attempt made, as its program says."""
        return int(self._said(pod)["begun"]["step"])

    def moments_said(self, pod: SeenPod) -> Mapping[str, float]:
        """Return when an attempt did what, as its program says, in Unix seconds."""
        return {name: float(said["at"]) for name, said in self._said(pod).items()}

    def _said(self, pod: SeenPod) -> Mapping[str, Mapping[str, float]]:
        lines = [json.loads(line) for line in self.logs(pod).splitlines() if line.startswith(descent.SAYS)]
        return {line["moment"]: line for line in lines}

    def mark_move(self, pod: SeenPod, node: str) -> None:
        """Ask for a move as a controller does that is killed right after it wrote down that it wants it."""
        notes = {labels.ANNOTATION_MOVE_TO: node, labels.ANNOTATION_MOVE_ASKED_AT: f"{time.time():.3f}"}
        self.api.patch(PODS.path(self.namespace, pod.name), {"metadata": {"uid": pod.uid, "annotations": notes}})

    def another_node(self, pod: SeenPod) -> str:
        """Return the node with the fewest running trials among those that ``pod`` is not on."""
        load = dict.fromkeys((name for name in self.cluster.node_names if name != pod.node), 0)
        for other in self.pods.everywhere():
            if other.running and other.node in load:
                load[other.node] += 1
        return min(load, key=lambda name: (load[name], name))

    def begin_move(self, workflow: Workflow, trial: str) -> tuple[SeenPod, str]:
        """Mark a training trial for a move, and return its pod and the node that it is to go to."""
        self.wait(lambda: self.adopted(workflow), "the controller steers the workflow", 60)
        self.wait(lambda: trial in self.running(workflow), f"{trial} runs", STARTS_WITHIN_S)
        pod = self.running(workflow)[trial]
        target = self.another_node(pod)
        self.mark_move(pod, target)
        return pod, target

    @contextmanager
    def argo_away(self) -> Iterator[None]:
        """Kill Argo's controller, and start it again in the end."""
        self.cluster.machine(CONTROL).kill("workflow-controller")
        try:
            yield
        finally:
            self.cluster.restart_workflow_controller()

    def adopted(self, workflow: Workflow) -> bool:
        """Whether a controller has said that it steers the workflow."""
        notes = at(self.workflow(workflow), "metadata", "annotations") or {}
        return bool(notes.get(labels.ANNOTATION_ADOPTED) == workflow.uid)

    def delete(self, workflow: Workflow) -> None:
        """Delete the workflow and wait until it is gone."""
        self.kubectl("delete", "workflow", workflow.name)

    def has_workflow(self, workflow: Workflow) -> bool:
        """Whether the workflow still is there."""
        try:
            self.workflow(workflow)
        except NotFoundError:
            return False
        return True


@contextmanager
def opened_bench(cluster: Cluster, tracking: AnyTracking, folder: Path) -> Iterator[Bench]:
    """Make a namespace for sweeps, and remove it and what runs for it in the end."""
    with sweep_namespace(cluster.kubectl, f"sweeps-{secrets.token_hex(3)}", folder / "state") as inside:
        api = KubeApi.load(str(cluster.kubeconfig))
        made = Bench(cluster, inside, tracking, folder, api, PodsSeen(api, inside.namespace))
        try:
            yield made
        finally:
            made.close()
