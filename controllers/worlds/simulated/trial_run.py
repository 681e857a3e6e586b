"""One trial in virtual time, over all its attempts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from controllers.core.after_attempt import (
    AttemptEnd,
    AttemptHistory,
    EndedBy,
    Failure,
    Following,
    TrialRetries,
    after_attempt,
)
from controllers.core.model import NodeName, Phase, Trial, TrialId
from controllers.worlds.simulated.gangs import gang_speed
from controllers.worlds.simulated.report_log import CpuUse, ReportLog
from controllers.worlds.simulated.workload import Network, TrialSpec

_SHOWN_ON_NODES = frozenset({Phase.RUNNING, Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})
_IMPORT_CORES = 1.0
"""Cores that an attempt can use before its first step: imports run on one thread."""


class Stage(Enum):
    """Where an attempt, or the wait for the next one, stands."""

    GATED = auto()
    """Waits for a ``Place`` for its first attempt."""
    QUEUED = auto()
    """Waits for the scheduler."""
    GATHERING = auto()
    """The scheduler has placed some workers of a gang: they hold their room and wait for the others."""
    STARTING = auto()
    """Has its node; the container is being made."""
    RESTORING = auto()
    """The training process loads its checkpoint."""
    WARMING = auto()
    """It imports and loads data, on its share of the CPU."""
    TRAINING = auto()
    LEAVING = auto()
    """Was told to leave: saves, trains no more."""
    AWAY = auto()
    """Between two attempts."""
    SUSPENDED = auto()
    """Waits for a ``Place`` to go on."""
    ENDED = auto()


_RUNNING = frozenset({Stage.RESTORING, Stage.WARMING, Stage.TRAINING, Stage.LEAVING})
WAITING: Final = frozenset({Stage.GATED, Stage.SUSPENDED})
"""Stages in which only a ``Place`` lets a trial go on."""


class Rest(Enum):
    """What an attempt leaves for that is not to go on at a place which is known."""

    SUSPEND = auto()
    STOP = auto()
    ANYWHERE = auto()
    """Its node is drained: the next attempt goes wherever the scheduler finds room."""


_PHASE_OF: Final = {
    Rest.SUSPEND: Phase.SUSPENDING,
    Rest.STOP: Phase.STOPPING,
    Rest.ANYWHERE: Phase.MOVING,
}
_ENDED_BY: Final = {Rest.SUSPEND: EndedBy.PAUSE, Rest.STOP: EndedBy.STOP, Rest.ANYWHERE: EndedBy.MOVE}


@dataclass(frozen=True, slots=True)
class Usage:
    """Cores that a trial used until ``at`` seconds, from the end of the usage before."""

    at: float
    node: NodeName | None
    cores: float


@dataclass(slots=True)
class TrialRun:
    """A trial's state.

    ``work`` is in lone seconds; the newest checkpoint holds ``saved`` of it, the one before ``saved_before``.
    ``warm_left`` is in core seconds.
    ``cores`` are what it uses now, ``waiting`` those that it would use besides, and ``rate`` is what its stage gains
    each second, all since ``since``.
    ``version`` goes on with each stage, so that what was due in an earlier one is void. ``wanted_cpu`` is a share that
    was asked for and has not taken hold yet. ``nodes`` are those of its workers by rank, ``targets`` those where a move
    that is under way leads, ``moved_from`` those where the move that its next attempt completes began. ``workers`` is
    how many it has or starts with; of a gang, ``given`` is what each of its nodes gives each worker there: cores,
    their speed and that of its devices, and ``used`` the cores that all of them use there. A worker of a ``silent`` run
    is on a node that was lost. ``unmet`` counts the attempts whose workers did not all come, ``evictions`` those whose
    nodes were drained. ``lost_work`` is the work, in lone seconds, that was lost in all. ``rest`` is what it was told
    to leave for, if not for a move; ``stopped`` is why it was stopped, empty where it was not.
    ``scales`` counts the attempts that had another number of workers than ``size_before``, that of the one before.
    ``lineage`` are the trials whose checkpoints it went on from. ``unseen`` is where a trial of a cluster puts itself
    when it no longer looks as it did.
    """

    spec: TrialSpec
    stage: Stage
    log: ReportLog
    cpu: float
    unseen: dict[TrialId, "TrialRun"] = field(repr=False)
    nodes: tuple[NodeName, ...] = ()
    targets: tuple[NodeName, ...] = ()
    workers: int = 1
    given: dict[NodeName, tuple[float, float, float]] = field(default_factory=dict)
    used: dict[NodeName, float] = field(default_factory=dict)
    silent: bool = False
    unmet: int = 0
    evictions: int = 0
    lost_work: float = 0.0
    rest: Rest | None = None
    wanted_cpu: float | None = None
    attempt: int = 0
    moves: int = 0
    scales: int = 0
    size_before: int = 0
    suspensions: int = 0
    failures: int = 0
    resizes: int = 0
    first_node: NodeName | None = None
    work: float = 0.0
    saved: float = 0.0
    saved_before: float = 0.0
    warm_left: float = 0.0
    cores: float = 0.0
    rate: float = 0.0
    since: float = 0.0
    cpu_seconds: float = 0.0
    cpu_wait: float = 0.0
    waiting: float = 0.0
    ended_at: float | None = None
    succeeded: bool = False
    stopped: str = ""
    lineage: tuple[TrialId, ...] = ()
    version: int = 0
    moved_from: tuple[NodeName, ...] = ()
    usage: list[Usage] = field(default_factory=list)
    _shown: Trial | None = None

    @property
    def node(self) -> NodeName | None:
        """Node of its first worker."""
        return self.nodes[0] if self.nodes else None

    @property
    def target(self) -> NodeName | None:
        """Where a move that is under way leads its first worker."""
        return self.targets[0] if self.targets else None

    def on(self, node: NodeName) -> int:
        """Return how many of its workers are on ``node``."""
        return self.nodes.count(node)

    def coming(self, node: NodeName) -> int:
        """Return how many more workers its next attempt will have on ``node`` than the present one."""
        return max(0, self.targets.count(node) - self.nodes.count(node))

    def expected_cpu(self, node: NodeName) -> float:
        """Return the cores that its next attempt will request of ``node`` beyond what the present one holds there."""
        return max(0.0, self.targets.count(node) * self.spec.cpu - self.nodes.count(node) * self.held_cpu)

    @property
    def computes(self) -> bool:
        """Whether it uses CPU now."""
        return self.stage is Stage.TRAINING or self.stage is Stage.WARMING

    @property
    def runs(self) -> bool:
        """Whether its training process is there."""
        return self.stage in _RUNNING

    @property
    def leaves(self) -> bool:
        """Whether it was told to leave and has not gone."""
        return (bool(self.targets) or self.rest is not None) and self.runs

    @property
    def wished_cpu(self) -> float:
        """Cores that it will have once nothing is under way."""
        return self.cpu if self.wanted_cpu is None else self.wanted_cpu

    @property
    def held_cpu(self) -> float:
        """Cores that count as requested on its node where the next attempt of a trial is to go."""
        return max(self.cpu, self.wished_cpu)

    @property
    def most_cores(self) -> float:
        """Most cores that it can use in its stage."""
        usable = self.spec.speedup.max_cores if self.stage is Stage.TRAINING else _IMPORT_CORES
        return min(usable, self.spec.limit)

    @property
    def stage_ends_at(self) -> float:
        """When its stage will be over as things stand, in seconds."""
        if not self.rate:
            return math.inf
        left = self.spec.work_s - self.work if self.stage is Stage.TRAINING else self.warm_left
        return self.since + max(0.0, left) / self.rate

    @property
    def phase(self) -> Phase:
        """Where it stands, as policies see it."""
        if self.stage is Stage.ENDED:
            ended_well = Phase.STOPPED if self.stopped else Phase.SUCCEEDED
            return ended_well if self.succeeded else Phase.FAILED
        if self.stage is Stage.SUSPENDED:
            return Phase.SUSPENDED
        if self.rest is not None:
            return _PHASE_OF[self.rest]
        if self.targets:
            return Phase.MOVING
        return Phase.RUNNING if self.stage in _RUNNING else Phase.PENDING

    @property
    def shown_on(self) -> tuple[NodeName, ...]:
        """The nodes that policies see it on: none before it runs."""
        return self.nodes if self.phase in _SHOWN_ON_NODES else ()

    def change(self) -> None:
        """Note that it does not look as it did."""
        self._shown = None
        self.unseen[self.spec.id] = self

    def shown(self) -> Trial:
        """Return the trial for policies."""
        if self._shown is None:
            phase, spec = self.phase, self.spec
            self._shown = Trial(
                id=spec.id,
                phase=phase,
                cpu=self.cpu,
                base_cpu=spec.cpu,
                memory=spec.memory,
                direction=spec.direction,
                submitted_at=spec.submitted_at,
                nodes=self.shown_on,
                attempt=self.attempt,
                moves=self.moves,
                workers=self.workers,
                min_workers=spec.min_workers,
                max_workers=spec.max_workers,
                destination=self.targets if phase is Phase.MOVING else (),
                gated=self.stage in WAITING,
                goals=spec.goals.since(spec.submitted_at),
                devices=spec.devices,
                parameters=spec.parameters,
                suspensions=self.suspensions,
                search=spec.search,
                sweep=spec.sweep,
                may_use=spec.may_use,
                lineage=self.lineage,
            )
        return self._shown

    def become(self, spec: TrialSpec) -> None:
        """Be the run of ``spec``, before anything was trained."""
        self.spec = spec
        self.log.become(spec)
        self.change()

    @property
    def kept(self) -> float:
        """Work, in lone seconds, that its newest checkpoint holds: a periodic one, or that of its last leave."""
        every = self.spec.checkpoint_every_s
        periodic = 0.0 if every is None else math.floor(self.work / every + 1e-9) * every
        return max(self.saved, periodic)

    def follow(self, parent: "TrialRun", spec: TrialSpec) -> None:
        """Go on from the newest checkpoint of ``parent`` as ``spec`` does, while the trial is suspended."""
        self.lineage = (*self.lineage, parent.spec.id)
        self.spec = spec
        self.work = self.saved = self.saved_before = parent.kept
        self.log.follow(spec)
        self.change()

    def enter(self, stage: Stage) -> None:
        """Begin ``stage``; what was due in the one before is void."""
        self.stage = stage
        self.version += 1
        self.change()

    def void(self) -> None:
        """Let nothing come of what was due in this stage."""
        self.version += 1

    def advance(self, now: float) -> None:
        """Do what its cores let it do until ``now``."""
        seconds = now - self.since
        self.since = now
        if not self.cores or not seconds:
            return
        self.cpu_seconds += self.cores * seconds
        self.cpu_wait += self.waiting * seconds
        if self.stage is Stage.TRAINING:
            self.work = min(self.spec.work_s, self.work + self.rate * seconds)
        else:
            self.warm_left = max(0.0, self.warm_left - self.rate * seconds)

    def give(self, now: float, cores: float, speed: float, most: float, *, on_device: float = 1.0) -> None:
        """Let it go on with ``cores`` cores of ``speed`` from ``now`` on; it has been advanced until then.

        It would run on ``most`` cores if it were given them. Its devices let it train ``on_device`` times as fast.
        """
        self._go_on(now, cores, self._alone(cores, speed, on_device), most - cores)

    def settle(self, now: float, network: Network, zones: Mapping[NodeName, str]) -> None:
        """Let a gang go on from ``now`` on with what its nodes have given it; it has been advanced until then.

        All its workers wait for the slowest, and use no CPU meanwhile.

        Args:
            now: In seconds.
            network: What its workers talk over.
            zones: The zone of each node.
        """
        parts = [self.given.get(node, (0.0, 0.0, 1.0)) for node in self.nodes]
        speeds = [self._alone(*part) for part in parts]
        if self.stage is Stage.TRAINING:
            link = network.slowest_link(self.nodes, [zones[node] for node in self.nodes])
            made = gang_speed(self.spec.exchange, speeds, link, network.call_s)
            rate, busy = made.rate, made.busy
        else:
            rate, busy = min(speeds), (1.0,) * len(parts)
        self.used = dict.fromkeys(self.nodes, 0.0)
        waiting = 0.0
        for node, (cores, *_), part in zip(self.nodes, parts, busy, strict=True):
            self.used[node] += cores * part
            waiting += max(0.0, min(self.most_cores, _IMPORT_CORES) - cores) * part
        self._go_on(now, sum(self.used.values()), rate, waiting)

    def _alone(self, cores: float, speed: float, on_device: float) -> float:
        """Return what its stage gains each second by ``cores`` cores of ``speed``, and devices of ``on_device``."""
        if self.stage is not Stage.TRAINING:
            return cores * speed
        return self.spec.speedup.speed(self.spec.left_to_train(cores)) * speed * on_device

    def _go_on(self, now: float, cores: float, rate: float, waiting: float = 0.0) -> None:
        if cores != self.cores:
            self.usage.append(Usage(now, self.node, self.cores))
        self.cores, self.rate, self.waiting = cores, rate, max(0.0, waiting)
        use = CpuUse(self.cpu_seconds, cores, self.cpu_wait, self.waiting)
        self.log.go_on(now, self.work, rate if self.stage is Stage.TRAINING else 0.0, use)

    def halt(self, now: float) -> None:
        """Do what its cores let it do until ``now``, and no more from then on."""
        self.advance(now)
        self.given, self.used = {}, {}
        self._go_on(now, 0.0, 0.0)

    def finish(self, now: float) -> None:
        """End its work; what rounding has left of it counts as done."""
        self.work = self.spec.work_s
        self.halt(now)

    def save(self, work: float) -> None:
        """Keep a checkpoint of ``work``, if that is more than the newest one holds."""
        if work > self.saved:
            self.saved_before, self.saved = self.saved, work

    def lose(self) -> None:
        """Fall back to the newest checkpoint, a periodic one or that of the last leave."""
        every = self.spec.checkpoint_every_s
        if every is not None:
            periodic = math.floor(self.work / every + 1e-9)
            # Both, since the newest may turn out to be broken.
            self.save((periodic - 1) * every)
            self.save(periodic * every)
        # A checkpoint that is due now may hold more, by rounding.
        self.lost_work += max(0.0, self.work - self.saved)
        self.work = self.saved

    def after_failing(self) -> Following:
        """Return what follows its attempt, which has failed now."""
        by = EndedBy.ITSELF
        if self.leaves:
            by = EndedBy.MOVE if self.rest is None else _ENDED_BY[self.rest]
        end = AttemptEnd(Failure(1, "", self.since), self.since, by)
        return after_attempt(AttemptHistory(self.failures), end, TrialRetries(self.spec.retries))

    def restore_the_one_before(self) -> None:
        """Fall back to the checkpoint before the newest one, which is broken."""
        self.work = self.saved = self.saved_before
        self.saved_before = 0.0
