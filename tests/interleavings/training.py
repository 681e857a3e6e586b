"""A cluster in which trials train: what Argo, the scheduler, the kubelets and the trainers do, one step at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from controllers.core import labels
from controllers.core.after_attempt import EXIT_TERMINATED
from controllers.worlds.argo.calls.errors import UnavailableError
from controllers.worlds.argo.calls.untrusted import at
from controllers.worlds.argo.reading.demands import HOSTNAME
from controllers.worlds.argo.reading.pods import PodRecord
from mlflow_hooks import contract
from tests.controllers.worlds.argo import objects
from tests.controllers.worlds.argo.fake_api import Json, Store
from tests.controllers.worlds.argo.objects import NAMESPACE, UID, WORKFLOW
from tests.interleavings.checks import MARKED_BEFORE_ASKED, Checks
from tests.interleavings.steps import Steps
from tests.interleavings.tracker import TrackedRun, Tracker

Doing = tuple[str, Callable[[], None]]
KILLED: Final = 137
GRACE_S: Final = 5
STEP_S: Final = 1.0
_GOES_ON_ELSEWHERE: Final = frozenset({contract.EXIT_MIGRATE, EXIT_TERMINATED, KILLED})
_NODES: Final = ("n1", "n2")


@dataclass
class Attempt:
    """A pod as Argo has it on record, and the program in it."""

    number: int
    uid: str
    node: str = ""
    exit_code: int | None = None
    asked_at: float | None = None

    @property
    def started(self) -> bool:
        """Whether its program was begun."""
        return bool(self.node)


@dataclass
class Job:
    """A trial: how long it trains, and how it behaves. ``succeeded`` tells that Argo's step of it is over."""

    name: str
    steps: int
    gated: bool = False
    deaf: bool = False
    fails: bool = False
    saved: int = 0
    done: int = 0
    next_at: float = 0.0
    succeeded: bool = False
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Its id."""
        return objects.trial(self.name)


class Training:
    """The cluster. Its objects are what the controller sees; what the programs know is here.

    Args:
        steps: of the run.
        tracker: where the programs log to.
        checks: are shown each signal.
        grants_all: whether the controller may exec and evict; else trials see by an annotation that they are asked.
    """

    def __init__(self, steps: Steps, store: Store, tracker: Tracker, checks: Checks, *, grants_all: bool) -> None:
        self.store = store
        self.grants_all = grants_all
        self.jobs = (Job("a", 14), Job("b", 10, gated=True), Job("c", 25, deaf=True), Job("d", 12, fails=True))
        self._steps = steps
        self._tracker = tracker
        self._checks = checks
        self._pods_made = 0
        self._news_for_record = False
        for name in _NODES:
            store.put("nodes", objects.node(name, "4"))
        made = objects.workflow(templates=[objects.template(job.name) for job in self.jobs])
        made["metadata"]["annotations"] = {}
        store.put("workflows", made)

    @property
    def over(self) -> bool:
        """Whether the workflow is over, and on record as such."""
        return str(at(self._workflow, "status", "phase")) == "Succeeded"

    def doings(self) -> Iterator[Doing]:
        """Yield what may happen next, each as words and as a function that makes it happen."""
        for job in self.jobs:
            if not job.succeeded and (doing := self._doing_of(job)) is not None:
                yield doing
        if self._news_for_record:
            yield "Argo writes its record", self._write_record

    def signal(self, pod: PodRecord, *, kills: bool) -> None:
        """Send SIGTERM or SIGKILL to the program in a pod, as the kubelet does: by the pod's name.

        Raises:
            UnavailableError: no program runs there.
        """
        assert pod.definition is not None
        job = next(job for job in self.jobs if job.id == pod.definition.id)
        last, there = job.attempts[-1], self._pod(job)
        if there is None or there["metadata"]["name"] != pod.name or not self._runs(last, there):
            message = f"nothing runs in {pod.name}"
            raise UnavailableError(message)
        if last.uid != pod.uid:
            self._checks.broken("a signal reaches the pod that it is meant for", f"{pod.uid} instead of {last.uid}")
        if not (self._marked(there) or self._stopped(job)):
            self._checks.broken(MARKED_BEFORE_ASKED, pod.name)
        if not kills:
            last.asked_at = self._steps.now if last.asked_at is None else last.asked_at
        elif last.asked_at is None or self._steps.now - last.asked_at < GRACE_S:
            self._checks.broken("nobody is killed in its grace", f"{pod.name}, asked at {last.asked_at}")
        else:
            self._exit(job, KILLED)

    def moves_made(self, trial: str) -> int:
        """Return how often a trial arrived on another node than it had been asked to leave, by its pods."""
        job = next(job for job in self.jobs if job.id == trial)
        found = 0
        for attempt in job.attempts:
            pod = self.store.objects["pods"].get(self._key(job, attempt))
            left = at(pod, "metadata", "annotations", labels.ANNOTATION_MOVED_FROM)
            found += bool(left and attempt.started and attempt.node != left)
        return found

    def _doing_of(self, job: Job) -> Doing | None:
        if not job.attempts:
            return f"Argo makes the first pod of {job.name}", lambda: self._make(job, 0, gated=job.gated)
        last, pod = job.attempts[-1], self._pod(job)
        if last.exit_code is not None:
            return f"Argo follows attempt {last.number} of {job.name}", lambda: self._follow(job, last)
        if pod is None:
            return f"Argo misses a pod of {job.name}", lambda: self._miss(job, last)
        if not at(pod, "spec", "nodeName"):
            gated = bool(at(pod, "spec", "schedulingGates"))
            return None if gated else (f"{job.name} is scheduled", lambda: self._schedule(pod))
        if not last.started:
            return f"{job.name} starts", lambda: self._start(job, last, pod)
        if self._wanted(pod) != self._has(pod):
            return f"the kubelet resizes {job.name}", lambda: self._show(job, {"running": {}})
        if last.asked_at is None and at(pod, "metadata", "annotations", labels.ANNOTATION_LEAVE) == last.uid:
            return f"the kubelet shows {job.name} the request", lambda: self._ask(last)
        if last.asked_at is not None and not job.deaf:
            return f"{job.name} saves and leaves", lambda: self._leave(job)
        return (f"{job.name} trains", lambda: self._train(job, last)) if self._steps.now >= job.next_at else None

    def _make(self, job: Job, number: int, *, gated: bool) -> None:
        self._pods_made += 1
        uid = f"pod-{self._pods_made}"
        job.attempts = [*job.attempts[:number], Attempt(number, uid)]
        self.store.put("pods", objects.pod(job.name, number, gated=gated, uid=uid, grace=GRACE_S, sees_asks=True))
        self._news_for_record = True

    def _follow(self, job: Job, last: Attempt) -> None:
        self._news_for_record = True
        if last.exit_code == 0 or self._stopped(job):
            # Of a trial that was stopped, Argo makes one more pod, which only ends the step.
            job.succeeded = True
            return
        adopted = at(self._workflow, "metadata", "annotations", labels.ANNOTATION_ADOPTED) == UID
        self._make(job, last.number + 1, gated=adopted and last.exit_code in _GOES_ON_ELSEWHERE)

    def _miss(self, job: Job, last: Attempt) -> None:
        """Make a pod again that was deleted before its program began; the end of any other is one of its attempt."""
        if last.started:
            last.exit_code = -1
        elif self._stopped(job):
            job.succeeded = self._news_for_record = True
        else:
            # Argo works its gate out again from how the attempt before it ended.
            before = job.attempts[-2].exit_code if len(job.attempts) > 1 else None
            self._make(job, last.number, gated=job.gated if before is None else before in _GOES_ON_ELSEWHERE)

    def _schedule(self, pod: Json) -> None:
        chosen = at(pod, "spec", "nodeSelector", HOSTNAME)
        node = str(chosen).removeprefix("host-") if chosen else self._steps.chance.choice(_NODES)
        self.store.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}})
        self._news_for_record = True

    def _start(self, job: Job, last: Attempt, pod: Json) -> None:
        last.node = str(pod["spec"]["nodeName"])
        job.done, job.next_at = job.saved, self._steps.now + STEP_S
        self._show(job, {"running": {}})
        self._run(job)

    def _train(self, job: Job, last: Attempt) -> None:
        job.done += 1
        job.next_at = self._steps.now + STEP_S
        self._run(job).log("loss", 1.0 / job.done, job.done, self._steps.now)
        if job.done % 4 == 0:
            job.saved = job.done
        if job.fails and last.number == 0 and job.done == 5:
            self._exit(job, 1)
        elif job.done == job.steps:
            self._exit(job, 0)

    def _ask(self, attempt: Attempt) -> None:
        attempt.asked_at = self._steps.now

    def _leave(self, job: Job) -> None:
        job.saved = job.done
        self._exit(job, contract.EXIT_MIGRATE)

    def _exit(self, job: Job, code: int) -> None:
        job.attempts[-1].exit_code = code
        self._show(job, {"terminated": {"exitCode": code}}, "Failed" if code else "Succeeded")

    def _show(self, job: Job, state: Json, phase: str = "Running") -> None:
        """Have the kubelet tell of the main container what it does, and what it has."""
        pod = self._pod(job)
        assert pod is not None
        main = {"name": "main", "state": state, "resources": {"requests": {"cpu": self._wanted(pod)}}}
        self.store.put("pods", {**pod, "status": {**pod["status"], "phase": phase, "containerStatuses": [main]}})
        self._news_for_record = True

    def _write_record(self) -> None:
        nodes: dict[str, Json] = {}
        for job in self.jobs:
            if job.attempts:
                phase = "Succeeded" if job.succeeded else "Running"
                nodes |= objects.steps(job.name, phase, *((one.node, self._code(one)) for one in job.attempts))
        over = all(job.succeeded for job in self.jobs)
        status: Json = {"phase": "Succeeded" if over else "Running", "nodes": nodes}
        if over:
            status["finishedAt"] = objects.stamp(objects.BEGAN + self._steps.now)
        self.store.put("workflows", {**self._workflow, "status": status})
        self._news_for_record = False

    def _run(self, job: Job) -> TrackedRun:
        tags = {contract.TAG_SWEEP_ID: job.id.rpartition(".")[0], contract.TAG_TRIAL_ID: job.id}
        return self._tracker.run_of(tags)

    def _pod(self, job: Job) -> Json | None:
        """Return the newest pod of a trial; None where it was deleted."""
        last = job.attempts[-1]
        found = self.store.objects["pods"].get(self._key(job, last))
        return found if found is not None and found["metadata"]["uid"] == last.uid else None

    def _runs(self, attempt: Attempt, pod: Json) -> bool:
        return attempt.started and attempt.exit_code is None and bool(at(pod, "spec", "nodeName"))

    def _stopped(self, job: Job) -> bool:
        return bool(at(self._workflow, "metadata", "annotations", f"{labels.ANNOTATION_STOP}sweep-{job.name}"))

    @property
    def _workflow(self) -> Json:
        return self.store.objects["workflows"][f"{NAMESPACE}/{WORKFLOW}"]

    @staticmethod
    def _key(job: Job, attempt: Attempt) -> str:
        return f"{NAMESPACE}/{WORKFLOW}-{job.name}-{attempt.number}"

    @staticmethod
    def _code(attempt: Attempt) -> str | None:
        return None if attempt.exit_code is None else str(attempt.exit_code)

    @staticmethod
    def _marked(pod: Json) -> bool:
        notes = at(pod, "metadata", "annotations") or {}
        return bool(notes.get(labels.ANNOTATION_MOVE_TO) or notes.get(labels.ANNOTATION_REST))

    @staticmethod
    def _wanted(pod: Json) -> str:
        main = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
        return str(main["resources"]["requests"]["cpu"])

    @staticmethod
    def _has(pod: Json) -> str:
        return str(pod["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"])
