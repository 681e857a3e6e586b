"""One trial over all its attempts, put together from Argo's record of its step and from its pods. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.expressions import LEFT
from controllers.core.model import NodeName, Phase, Sample, Trial, TrialId
from controllers.core.results import TrialResult
from controllers.worlds.argo.attempts import given_up
from controllers.worlds.argo.definitions import TrialDefinition
from controllers.worlds.argo.demands import ANY_NODE, Demands
from controllers.worlds.argo.gangs import NO_PLAN, GangPlan, attempts_of, written_nodes
from controllers.worlds.argo.pods import MainState, PodRecord, Resources
from controllers.worlds.argo.workflows import Step
from mlflow_hooks.contract import EXIT_MIGRATE

_ON_NODES = frozenset({Phase.RUNNING, Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})


@dataclass(frozen=True, slots=True)
class PodHistory:
    """What is known of a trial's pods even when they are gone: the newest, that of the attempt before, and the counts.

    ``first_at`` is when the oldest pod seen was made, in Unix seconds; ``gone`` tells that the newest is gone.
    ``resizes`` counts the changes of the trial's share that were seen to take effect. ``params`` are the
    hyperparameters that a search gave the trial.
    """

    newest: PodRecord | None = None
    previous: PodRecord | None = None
    first_at: float = 0.0
    gone: bool = False
    moves: int = 0
    resizes: int = 0
    suspensions: int = 0
    params: str = ""

    def after(self, pods: Sequence[PodRecord]) -> "PodHistory":
        """Return the history after a look at those of the trial's pods that are there now; itself if nothing changed.

        The newest pod counts, even where an older one still runs: a node that is silent keeps its containers running,
        and fencing keeps the older attempt from writing.
        """
        if not pods:
            return self if self.gone or self.newest is None else replace(self, gone=True)
        pods = attempts_of(pods, (self.newest, self.previous))
        if len(pods) == 1 and self.newest is pods[0] and not self.gone:
            return self
        # Argo's retry of a whole workflow counts attempts anew, so the time of creation comes first.
        in_order = sorted(pods, key=lambda pod: (pod.created_at, pod.attempt))
        newest = in_order[-1]
        earlier = next((pod for pod in reversed(in_order[:-1]) if pod.attempt < newest.attempt), None)
        if self.newest is newest and not self.gone and (earlier is None or earlier is self.previous):
            return self
        if earlier is None:
            # Seen before, and gone by now: the mark of the move that brought the newest pod is on it alone.
            seen = (self.newest, self.previous)
            earlier = next((pod for pod in seen if pod is not None and pod.attempt == newest.attempt - 1), None)
        return PodHistory(
            newest=newest,
            first_at=self.first_at or in_order[0].created_at,
            previous=earlier,
            moves=max(self.moves, *(_moves_of(pod) for pod in pods)),
            suspensions=max(self.suspensions, *(pod.marks.suspensions for pod in pods)),
            resizes=max(self.resizes, *(pod.marks.resizes for pod in pods)) + self._was_resized(newest),
            params=next((one for pod in reversed(in_order) if (one := _params_of(pod))), self.params),
        )

    def _was_resized(self, newest: PodRecord) -> bool:
        before = self.newest
        if before is None or before.uid != newest.uid or before.share.has == newest.share.has:
            return False
        # What a container has is only known while it runs: its start changes it, too.
        return before.main is MainState.RUNNING and newest.main is MainState.RUNNING


@dataclass(frozen=True, slots=True)
class TrialState:
    """A trial as it is now.

    ``over_since`` is when its workflow ended, in Unix seconds, None while that runs. ``stopped`` is why it was stopped,
    empty where it was not. ``pending_targets`` has the node of each worker of a move that was just taken on, before the
    API server has shown its mark; ``pending_rest`` tells the same of a suspension or a stop. ``plan`` is a gang's.
    ``tries`` is after how many attempts a failure is the last, and ``idle`` after how many one that leaves is, None
    where no controller has said.
    """

    definition: TrialDefinition
    step: Step | None
    history: PodHistory
    over_since: float | None
    stopped: str = ""
    pending_targets: tuple[NodeName, ...] = ()
    pending_rest: Phase | None = None
    plan: GangPlan = NO_PLAN
    tries: int | None = None
    idle: int | None = None

    @property
    def pod(self) -> PodRecord | None:
        """Its newest pod, None where that is gone."""
        return None if self.history.gone else self.history.newest

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        if self._succeeded:
            return Phase.STOPPED if self.stopped else Phase.SUCCEEDED
        if self._failed:
            return Phase.FAILED
        if self.stopped or self.pending_rest is Phase.STOPPING:
            return Phase.STOPPING
        if self.suspended:
            return Phase.SUSPENDED
        if self.targets:
            return Phase.MOVING
        pod = self.pod
        asked_to_rest = self.history.newest is not None and self.history.newest.marks.rest
        if asked_to_rest or self.pending_rest is Phase.SUSPENDING:
            return Phase.SUSPENDING
        started = pod is not None and pod.on_node and pod.main is not MainState.WAITING
        return Phase.RUNNING if started else Phase.PENDING

    @property
    def waits_to_begin(self) -> bool:
        """Whether its newest pod waits for the trial's first place, or for what a search gives the trial."""
        pod = self.pod
        if pod is None or not pod.gated or pod.marks.place:
            return False
        # A gang that there is a plan for has begun before: Argo was told to run it again.
        return self.definition.asks or (pod.attempt == 1 and not self.plan.sizes)

    @property
    def suspended(self) -> bool:
        """Whether its newest pod waits to go on after a suspension."""
        pod = self.pod
        if pod is None or not pod.gated or pod.marks.place:
            return False
        return pod.marks.suspended or self.rested_before

    @property
    def rested_before(self) -> bool:
        """Whether the attempt before the newest was asked to leave so that the trial rests."""
        pod, previous = self.history.newest, self.history.previous
        return bool(pod and previous and previous.attempt == pod.attempt - 1 and previous.marks.rest)

    @property
    def goes_on(self) -> bool:
        """Whether the attempt before the newest saved what the newest goes on with, as its exit code says."""
        pod, previous = self.history.newest, self.history.previous
        if pod is None or previous is None or previous.attempt != pod.attempt - 1 or previous.leaving is None:
            return False
        return previous.leaving.how.code == EXIT_MIGRATE

    @property
    def suspensions(self) -> int:
        """How often it has been suspended."""
        pod = self.history.newest
        return self.history.suspensions + bool(self.suspended and pod is not None and not pod.marks.suspended)

    @property
    def fails_alike(self) -> str:
        """How its newest two attempts failed, where both did so at once and alike; else empty."""
        pod, previous = self.pod, self.history.previous
        if pod is None or previous is None or previous.attempt != pod.attempt - 1:
            return ""
        same = pod.failure and previous.failure and pod.failure.at_once == previous.failure.at_once
        return pod.failure.at_once if pod.failure and same else ""

    @property
    def targets(self) -> tuple[NodeName, ...]:
        """The node of each worker of the move that is under way, by rank; empty where there is none."""
        if self.pending_targets:
            return self.pending_targets
        pod = self.history.newest
        if pod is None:
            return ()
        # First the old pod is asked to leave; even gone, it says where to until its successor is there.
        if pod.marks.move_nodes:
            return _names(pod.marks.move_nodes)
        if self.history.gone or pod.over:
            return ()
        # Then the new pod waits at its gate,
        if pod.gated and (targets := self.targets_of_previous):
            return targets
        # and starts where the opened gate sent it.
        starting = pod.main is MainState.WAITING and pod.marks.moved_from and pod.marks.placed_on
        return _names(one.marks.placed_on for one in pod.pods if one.marks.placed_on) if starting else ()

    @property
    def targets_of_previous(self) -> tuple[NodeName, ...]:
        """The node of each worker that the attempt before was asked to leave for."""
        pod, previous = self.history.newest, self.history.previous
        if pod is None or previous is None or previous.attempt != pod.attempt - 1:
            return ()
        return _names(previous.marks.move_nodes)

    @property
    def workers(self) -> int:
        """How many workers it has; where it waits for a place, how many it had, or would begin with."""
        pod, previous = self.history.newest, self.history.previous
        if not self.definition.gang:
            return 1
        if pod is None or (pod.gated and not pod.marks.place):
            return self.definition.workers if pod is None or previous is None else previous.size
        return max(pod.size, len(pod.marks.place))

    @property
    def moves(self) -> int:
        """How many moves it has completed: by its pods, or by Argo's record where these are all gone."""
        if self.history.newest is not None:
            return self.history.moves
        attempts = () if self.step is None else self.step.attempts
        pairs = pairwise(attempts)
        return sum(one.exit_code in LEFT and bool(other.node) and other.node != one.node for one, other in pairs)

    @property
    def base_cpu(self) -> float:
        """Cores that its author asked for."""
        if self.history.newest is not None:
            return self.history.newest.base_cpu
        return 0.0 if self.step is None else self.step.cpu

    @property
    def memory(self) -> float:
        """Bytes that its author asked for."""
        if self.history.newest is not None:
            return self.history.newest.memory
        return 0.0 if self.step is None else self.step.memory

    @property
    def devices(self) -> Devices:
        """Devices that its author asked for."""
        if self.history.newest is not None:
            return self.history.newest.requests.devices
        return NO_DEVICES if self.step is None else self.step.devices

    @property
    def demands(self) -> Demands:
        """What its author demands of its node."""
        return ANY_NODE if self.history.newest is None else self.history.newest.demands

    @property
    def next_requests(self) -> Resources:
        """What its next pod will request: what its author asked for, whatever it has now."""
        pod = self.history.newest
        share = None if pod is None else pod.pods[0].share
        sidecars = 0.0 if pod is None or share is None else pod.requests.cpu - max(share.wanted, share.has)
        memory = self.memory if pod is None else pod.requests.memory
        return Resources(self.base_cpu + max(0.0, sidecars), memory, self.devices)

    @property
    def attempt(self) -> int:
        """How many attempts there have been."""
        recorded = 0 if self.step is None else len(self.step.attempts)
        return max(recorded, 0 if self.pod is None else self.pod.attempt)

    @property
    def submitted_at(self) -> float:
        """When Argo began the step, or made its first pod, in Unix seconds."""
        if self.step is not None and self.step.started_at is not None:
            return self.step.started_at
        return self.history.first_at

    @property
    def _succeeded(self) -> bool:
        pod = self.history.newest
        # The pod shows its end seconds before Argo's record does. Once it is gone, the record knows better, if there is
        # one: Argo may have been told to run the step again.
        if pod is not None and pod.phase == "Succeeded" and (self.step is None or not self.history.gone):
            return True
        return self.step is not None and self.step.succeeded and not self._revived(self.step.finished_at)

    @property
    def _failed(self) -> bool:
        if self.over_since is not None and not self._revived(self.over_since):
            return True
        return self.step is not None and self.step.failed and not self._revived(self.step.finished_at)

    def _revived(self, ended_at: float | None) -> bool:
        """Whether a pod was made after that end: somebody had Argo retry, and its record is not here yet."""
        pod = self.pod
        return pod is not None and not pod.over and ended_at is not None and pod.created_at > ended_at

    def as_trial(self, origin: float, *, gate_opens: bool, may_use: frozenset[NodeName] | None = None) -> Trial:
        """Return the trial for policies; ``origin`` is the sweep's beginning in Unix seconds.

        ``gate_opens`` tells that its gate was just asked to be opened; ``may_use`` are the nodes it may use.
        """
        phase, pod = self.phase, self.pod
        first = phase is Phase.PENDING and self.waits_to_begin
        if gate_opens and phase is Phase.SUSPENDED:
            phase = Phase.PENDING
        submitted_at = max(0.0, self.submitted_at - origin)
        # Between two attempts a trial holds no node, and has the share that its next pod will start with.
        held = pod if pod is not None and pod.on_node and phase in _ON_NODES else None
        targets = self.targets if phase is Phase.MOVING else ()
        return Trial(
            id=self.definition.id,
            phase=phase,
            cpu=self.base_cpu if held is None else held.share.has,
            base_cpu=self.base_cpu,
            memory=self.memory,
            direction=self.definition.direction,
            submitted_at=submitted_at,
            nodes=() if held is None else _names(held.nodes),
            attempt=self.attempt,
            moves=self.moves,
            workers=self.workers,
            min_workers=self.definition.min_workers,
            max_workers=self.definition.workers,
            destination=targets,
            gated=phase is Phase.SUSPENDED or (first and not gate_opens),
            goals=self.definition.goals.since(submitted_at),
            devices=self.devices,
            parameters=self.definition.parameters,
            suspensions=self.suspensions,
            search=self.definition.search,
            sweep=self.definition.sweep,
            may_use=may_use,
        )

    def result(self, name: str, sample: Sample | None, origin: float) -> TrialResult:
        """Return how the trial went.

        Args:
            name: its short id.
            sample: the newest report of its training, if there is one.
            origin: when the sweep began, in Unix seconds.
        """
        nodes = [attempt.node for attempt in self.step.attempts if attempt.node] if self.step is not None else []
        if not nodes and self.history.newest is not None and self.history.newest.node:
            nodes = [self.history.newest.node]
        ended = self.step.finished_at if self.step is not None else None
        sizes = self.plan.sizes[: self.attempt]
        return TrialResult(
            id=name,
            submitted_s=max(0.0, self.submitted_at - origin),
            completed_s=max(0.0, (self.submitted_at if ended is None else ended) - origin),
            node=nodes[-1] if nodes else "",
            moves=self.moves,
            attempts=self.attempt,
            final_metric=None if sample is None else sample.value,
            succeeded=self.phase in {Phase.SUCCEEDED, Phase.STOPPED},
            suspensions=self.suspensions,
            stopped=self.stopped if self.phase is Phase.STOPPED else "",
            resizes=self.history.resizes,
            given_up=self.phase is Phase.FAILED and given_up(self),
            scales=sum(one != other for one, other in pairwise(sizes)),
            workers=self.workers,
            first_node=nodes[0] if nodes else "",
            params=self.definition.hyperparameters(),
            deadline_s=self.definition.goals.deadline_s,
            objective=self.definition.objective,
            direction=self.definition.direction.value,
            sweep=self.definition.sweep,
        )


def _params_of(pod: PodRecord) -> str:
    definition = pod.definition
    return definition.params if definition is not None and definition.search else ""


def _moves_of(pod: PodRecord) -> int:
    arrived = pod.marks.moved_from and pod.node and pod.main is not MainState.WAITING
    return pod.marks.moves + bool(arrived and written_nodes(pod.nodes) != pod.marks.moved_from)


def _names(nodes: Iterable[str]) -> tuple[NodeName, ...]:
    return tuple(NodeName(node) for node in nodes)


def group_by_trial(pods: Sequence[PodRecord]) -> Mapping[TrialId, list[PodRecord]]:
    """Return the pods that have a trial's definition, by the id of their trial."""
    found: dict[TrialId, list[PodRecord]] = {}
    for pod in pods:
        if pod.definition is not None:
            found.setdefault(pod.definition.id, []).append(pod)
    return found
