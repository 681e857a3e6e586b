"""The vocabulary that policies, engine and worlds share. Frozen values, no I/O.

Times are seconds of the sweep's own clock, CPU is in cores, memory in bytes.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, NewType, TypeVar

from controllers.core.aims import NO_AIMS, Aims
from controllers.core.aims import Direction as Direction  # noqa: PLC0414 - a word of the vocabulary
from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.earlier import NOTHING_EARLIER, Earlier
from controllers.core.earlier import Parameters as Parameters  # noqa: PLC0414 - a word of the vocabulary

T = TypeVar("T")
TrialId = NewType("TrialId", str)
NodeName = NewType("NodeName", str)
Value = str | int | float | bool
"""A hyperparameter's value as its author's program gets it."""
Point = tuple[tuple[str, Value], ...]
"""All hyperparameters of one trial by name, as a search found them."""


class Ask(StrEnum):
    """What is asked of a trial, whatever a policy wants: that it waits, or that it ends. Owners ask for both.

    ``YIELD`` is what an arbiter asks between sweeps: that it waits, since others have less than their part.
    """

    PAUSE = "pause"
    STOP = "stop"
    YIELD = "yield"


class Category(StrEnum):
    """How fast a trial still improves (thesis ch. 5.2.1; FlowCon's New, Watching, Completing)."""

    PROGRESSING = "progressing"
    WATCHING = "watching"
    CONVERGED = "converged"


class Phase(StrEnum):
    """Where a trial stands.

    ``MOVING`` lasts from the request to the next attempt's start, ``SUSPENDING`` from the request until the next
    attempt waits for a place, ``STOPPING`` from the request to the end.
    """

    PENDING = "pending"
    RUNNING = "running"
    MOVING = "moving"
    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    """Its checkpoint is kept, it holds nothing, and its next attempt waits for a ``Place``."""
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    STOPPED = "stopped"
    """Ended before its training was through, because a policy found that enough: a success that was cut short."""
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the trial."""
        return self is _SUCCEEDED or self is _FAILED or self is _STOPPED


# Every tick asks every trial for its phase, and finding a member by its enum takes longer than all else (Python 3.11).
_PENDING: Final = Phase.PENDING
_RUNNING: Final = Phase.RUNNING
_MOVING: Final = Phase.MOVING
_SUSPENDING: Final = Phase.SUSPENDING
_SUSPENDED: Final = Phase.SUSPENDED
_STOPPING: Final = Phase.STOPPING
_SUCCEEDED: Final = Phase.SUCCEEDED
_STOPPED: Final = Phase.STOPPED
_FAILED: Final = Phase.FAILED


@dataclass(frozen=True, slots=True)
class Sample:
    """The newest report of a trial's training, as a metric source found it."""

    value: float
    """Value of the trial's objective as it was logged: it may be NaN or infinite."""
    step: int
    """Step of the training that the value belongs to, as the program counts: our hooks count from 0."""
    at: float
    """When the value was logged, in seconds of the sweep's clock."""
    cpu_seconds: float | None = None
    """CPU seconds that all attempts of the trial have used by then; None where nothing reports them."""
    first: float | None = None
    """First value of the objective that the trial ever logged; None where the source does not know it."""
    steps_total: int | None = None
    """Steps that the whole training has; None where the program has not said."""
    best: float | None = None
    """Best value so far, from a source that also knows values which no poll has shown; else None."""
    training: str = ""
    """Name of this training, where the trial began again from nothing and so has several; empty where there is one."""
    cpu_wait: float | None = None
    """Seconds for which threads of the trial waited for a CPU, summed over threads and attempts; None where unknown."""
    also: tuple[tuple[str, float], ...] = ()
    """Newest finite values of the metrics beside the first objective (``Aims.metrics``): pairs of name and value."""
    remark: str = ""
    """What a person should know of the value, such as that its step is not the greatest; empty for nothing."""
    begun_again: int = 0
    """How often the trial was seen to begin again from nothing, in what it logged."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of a trial's training by now: all its samples merged. Only finite values count."""

    first: float
    """First value of the objective. With ``best`` it normalises growth."""
    best: float
    """Best value of the objective so far, in the trial's direction."""
    latest: float
    """Value of the newest report."""
    step: int
    """Step of the newest report, as in ``Sample``."""
    at: float
    """When the newest report was logged, in seconds of the sweep's clock."""
    cpu_seconds: float | None = None
    """CPU seconds that all attempts have used until the newest report; None where unknown."""
    steps_total: int | None = None
    """Steps that the whole training has; None where the program has not said."""
    dropped: int = 0
    """How many reports were NaN or infinite, and so were left out."""
    dropped_report: tuple[float, int] | None = None
    """Time (seconds of the sweep's clock) and step of the newest report that was left out, so that reading it again
    does not count it again."""
    training: str = ""
    """Name of the training that the reports are of, as in ``Sample``: what is known of an earlier one does not count.
    """
    cpu_wait: float | None = None
    """Seconds for which threads waited for a CPU, as in ``Sample``."""
    also: tuple[tuple[str, float], ...] = ()
    """Newest values of further metrics, as in ``Sample``."""


@dataclass(frozen=True, slots=True)
class Goals:
    """What a trial's author wants of it; None where they asked for nothing."""

    deadline_at: float | None = None
    """When the trial should have ended, in seconds of the sweep's clock."""
    target: float | None = None
    """Value of the objective that is good enough."""
    seconds_per_step: float | None = None
    """Seconds that a step should take."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One training job of a sweep over all its attempts, as its world sees it now.

    A trial that has, or may get, more than one worker is a gang: its workers start and end together.
    """

    id: TrialId
    """Name of the trial: unique in its world, and the same over all its attempts."""
    phase: Phase
    """Where the trial stands. Only its world changes it."""
    cpu: float
    """Cores that each worker requests now: its share."""
    base_cpu: float
    """Cores that the author asked for, for each worker: every attempt starts with these."""
    memory: float
    """Memory that each worker requests, in bytes."""
    direction: Direction
    """Which way the first objective improves."""
    submitted_at: float
    """When the trial was submitted, in seconds of the sweep's clock."""
    nodes: tuple[NodeName, ...] = ()
    """Node of each worker, by rank; a node may come several times. Empty while the trial has no place."""
    attempt: int = 0
    """Number of the newest attempt, counted from 1; 0 before the first."""
    moves: int = 0
    """Completed moves from node to node."""
    workers: int = 1
    """How many workers the trial has, or starts with unless a ``Place`` says otherwise."""
    min_workers: int = 1
    """Fewest workers with which the trial trains."""
    max_workers: int = 1
    """Most workers with which the trial trains."""
    destination: tuple[NodeName, ...] = ()
    """Node of each worker of the attempt that a move leads to, by rank; empty where no move is under way, or none was
    chosen yet."""
    gated: bool = False
    """The next attempt waits for a ``Place``: the first attempt of a pending trial, or the next one of a suspended
    trial. The world starts all other attempts by itself, except that a gang which lost a worker may wait here too."""
    progress: Progress | None = None
    """What is known of the training; None before the first finite report. The engine adds it: worlds leave it out."""
    goals: Goals = Goals()
    """What the author wants of this trial."""
    devices: Devices = NO_DEVICES
    """Whole devices, such as GPUs, that each worker holds alone."""
    parameters: Parameters = ()
    """Hyperparameters by name, as finite numbers and short texts; empty before a search has found them."""
    suspensions: int = 0
    """How often the trial was suspended."""
    diverged: bool = False
    """The newest value of the objective is NaN or infinite."""
    search: str = ""
    """Text of the search that gives the trial its hyperparameters when it first starts; empty where the author gave
    them."""
    sweep: str = ""
    """Name of the trial's sweep. Only objectives of one sweep can be compared."""
    may_use: frozenset[NodeName] | None = None
    """Nodes to which selectors, affinity and taints let the trial go; None where they keep it off no node."""
    threads: int = 0
    """Threads with which each worker was told to compute; 0 where it was not told."""
    may_ask: frozenset[str] | None = None
    """Names of the kinds of nodes (``NodeKind``) to which selectors, affinity and taints would let the trial go; None
    where they keep it off no kind."""
    aims: Aims = NO_AIMS
    """What the sweep wants beside its first objective: further ones, and constraints."""
    lineage: tuple[TrialId, ...] = ()
    """Trials from whose checkpoints this one went on, one for each ``Clone``, the newest last."""
    withheld: bool = False
    """The owner, an arbiter or an outer policy keeps the trial from starting for now, so it neither waits for a place
    nor is about to take room. Policies around a policy set it: worlds leave it out."""

    @property
    def gang(self) -> bool:
        """Whether it has, or may get, more than one worker."""
        return self.workers > 1 or self.max_workers > 1

    @property
    def moving_to(self) -> NodeName | None:
        """Node of the first worker of the attempt that a move leads to."""
        return self.destination[0] if self.destination else None

    @property
    def node(self) -> NodeName | None:
        """Node of the first worker."""
        return self.nodes[0] if self.nodes else None

    @property
    def live(self) -> bool:
        """Whether the trial holds a place on a node."""
        phase = self.phase
        held = phase is _RUNNING or phase is _MOVING or phase is _SUSPENDING or phase is _STOPPING
        return held and bool(self.nodes)

    @property
    def steady(self) -> bool:
        """Whether the trial runs, and was not told to leave."""
        return bool(self.nodes) and self.phase is _RUNNING

    @property
    def whole(self) -> bool:
        """Whether the trial runs, with all its workers, and was not told to leave."""
        return self.steady and len(self.nodes) == self.workers

    @property
    def waits(self) -> bool:
        """Whether its next attempt waits for a ``Place``."""
        return self.gated and not self.withheld and (self.phase is _PENDING or self.phase is _SUSPENDED)

    @property
    def starts(self) -> bool:
        """Whether its next attempt was let go and has no node yet: it is about to take room somewhere."""
        to_come = self.phase is _PENDING or self.phase is _SUSPENDED
        return to_come and not (self.gated or self.nodes)

    def with_progress(self, progress: Progress | None, *, diverged: bool = False) -> "Trial":
        """Return this trial with ``progress``: thousands of times a tick, and ``replace`` takes three times as long."""
        return Trial(
            self.id,
            self.phase,
            self.cpu,
            self.base_cpu,
            self.memory,
            self.direction,
            self.submitted_at,
            self.nodes,
            self.attempt,
            self.moves,
            self.workers,
            self.min_workers,
            self.max_workers,
            self.destination,
            self.gated,
            progress,
            self.goals,
            self.devices,
            self.parameters,
            self.suspensions,
            diverged,
            self.search,
            self.sweep,
            self.may_use,
            self.threads,
            self.may_ask,
            self.aims,
            self.lineage,
            self.withheld,
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A place for trials."""

    name: NodeName
    """Name of the node, unique in its world."""
    cpu: float
    """Cores that trials may request together."""
    memory: float = math.inf
    """Memory that trials may request together, in bytes."""
    cpu_used: float = 0.0
    """Cores that are busy now, as far as the world can tell."""
    ready: bool = True
    """The node takes new trials."""
    devices: Devices = NO_DEVICES
    """Whole devices that trials may hold there."""
    devices_starting: Devices = NO_DEVICES
    """Those of ``devices`` that are held by attempts which have a place and do not run yet; no trial shows these."""
    only_for: frozenset[str] = frozenset()
    """Kinds of devices that a trial must all ask for to come here: owners of scarce devices keep all others away."""
    zone: str = ""
    """Name of the zone. Nodes of one zone are near each other; empty where unknown."""
    supply: float = math.inf
    """Cores that the node's trials get together, where others use so much that this is less than ``cpu``."""
    room: float | None = None
    """Cores of requests that trials may start now, where requests alone do not tell: more than ``cpu`` leaves where
    trials use less than they request, less where something else is short. None where requests tell."""
    leaves_at: float | None = None
    """By when the node's trials must have left, in seconds of the sweep's clock; None where the node stays. A node that
    leaves takes no new trials, so it is not ``ready``."""
    kind: str = ""
    """Name of its ``NodeKind``; empty where unknown."""
    price: float | None = None
    """What an hour of the node costs, in the owner's currency; None where unknown."""
    device_model: str = ""
    """Model of the devices. Devices of one model are equally fast; empty where unknown."""
    replicas: Devices = NO_DEVICES
    """How often each device of a kind is counted in ``devices``, for kinds whose devices trials share."""

    @property
    def supplied(self) -> float:
        """Cores that its trials get together: requests are counted by ``cpu``, what is done by these."""
        return min(self.cpu, self.supply)


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A kind of nodes that an autoscaler can add, as far as it is known.

    A kind without a name stands for unknown nodes. Nobody knows whether any comes, so one trial at a time may try.
    """

    name: str
    """Name of the kind; empty for unknown nodes."""
    cpu: float
    """Cores that an empty node of the kind has for trials."""
    memory: float = math.inf
    """Memory that an empty node has for trials, in bytes."""
    devices: Devices = NO_DEVICES
    """Whole devices that an empty node has for trials."""
    only_for: frozenset[str] = frozenset()
    """Kinds of devices that a trial must all ask for to go there, as with ``Node``."""
    zone: str = ""
    """Name of the zone; empty where unknown."""
    boots_s: float = 120.0
    """Seconds from the request for a node until it takes trials."""
    more: float = math.inf
    """How many nodes can come beside those that are there and those that are ``coming``."""
    coming: int = 0
    """How many nodes were asked for and are not ready yet."""
    price: float | None = None
    """What an hour of a node costs, in the owner's currency; None where unknown."""
    spot: bool = False
    """The provider may take a node away at any time."""

    def holds(self, trial: Trial) -> bool:
        """Return whether a worker of the trial's next attempt has room on an empty one, and may go there."""
        return not self.name or (
            max(trial.cpu, trial.base_cpu) <= self.cpu
            and trial.memory <= self.memory
            and trial.devices.within(self.devices)
            and self.only_for <= trial.devices.kinds()
            and (trial.may_ask is None or self.name in trial.may_ask)
        )


@dataclass(frozen=True)
class Snapshot:
    """All that a policy may look at. Trials, nodes and kinds are sorted by name, in whatever order they were given."""

    now: float
    """Time of the tick, in seconds of the sweep's clock."""
    trials: tuple[Trial, ...]
    """Every trial that was submitted by now, ended ones included."""
    nodes: tuple[Node, ...]
    """Every node."""
    asked: Mapping[TrialId, Ask] = field(default_factory=dict)
    """What owners, or an arbiter, ask of trials that have not ended, by trial."""
    kinds: tuple[NodeKind, ...] = ()
    """The kinds of nodes that can come; empty where none can."""
    let_go: Mapping[TrialId, float] = field(default_factory=dict)
    """Trials that were let go without a node and have none yet: since when, in seconds of the sweep's clock."""
    spent: float | None = None
    """What the sweep has cost so far, in the currency of the nodes' prices; None where no price is known."""
    earlier: Earlier = NOTHING_EARLIER
    """What earlier sweeps taught, before this one began."""
    _worked_out: dict[Callable[["Snapshot"], Any], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # Here once, so that no policy has to sort again to be the same in any order.
        object.__setattr__(self, "trials", tuple(sorted(self.trials, key=attrgetter("id"))))
        object.__setattr__(self, "nodes", tuple(sorted(self.nodes, key=attrgetter("name"))))
        object.__setattr__(self, "kinds", tuple(sorted(self.kinds, key=attrgetter("name"))))

    @classmethod
    def in_order(  # noqa: PLR0913 - what a snapshot has, each named
        cls,
        now: float,
        trials: tuple[Trial, ...],
        unended: tuple[Trial, ...],
        nodes: tuple[Node, ...],
        asked: Mapping[TrialId, Ask] | None = None,
        *,
        kinds: tuple[NodeKind, ...] = (),
        let_go: Mapping[TrialId, float] | None = None,
        spent: float | None = None,
        earlier: Earlier = NOTHING_EARLIER,
    ) -> "Snapshot":
        """Return the snapshot of ``trials`` that are sorted by name already; ``unended`` are those that have not ended.

        It spares a look at each of thousands of trials at every tick.
        """
        snapshot = cls(now, (), nodes, asked or {}, kinds, let_go or {}, spent, earlier)
        object.__setattr__(snapshot, "trials", trials)
        object.__setattr__(snapshot, "unended", unended)
        return snapshot

    def of_trials(self, trials: tuple[Trial, ...], unended: tuple[Trial, ...]) -> "Snapshot":
        """Return it with these ``trials`` alone, sorted by name as they are here; ``unended`` are those not ended yet.

        What owners ask is left out: only the outermost policy hears them.
        """
        return Snapshot.in_order(
            self.now,
            trials,
            unended,
            self.nodes,
            kinds=self.kinds,
            let_go=self.let_go,
            spent=self.spent,
            earlier=self.earlier,
        )

    def withholding(self, trials: Collection[TrialId]) -> "Snapshot":
        """Return it as policies shall see it that must not start ``trials``, nor keep room for those of them that wait.

        What owners ask is left out, as in ``of_trials``.
        """
        withheld = {
            trial.id: replace(trial, withheld=True) for trial in self.unended if trial.waits and trial.id in trials
        }
        every, unended = (
            tuple(withheld.get(trial.id, trial) for trial in all_) for all_ in (self.trials, self.unended)
        )
        return self.of_trials(every, unended)

    @cached_property
    def unended(self) -> tuple[Trial, ...]:
        """The trials that have not ended, by name: late in a sweep a small part of them."""
        return tuple([trial for trial in self.trials if not trial.phase.ended])

    @cached_property
    def named(self) -> Mapping[TrialId, Trial]:
        """Every trial by its id."""
        return {trial.id: trial for trial in self.trials}

    def once(self, work_out: Callable[["Snapshot"], T]) -> T:
        """Return ``work_out`` of this snapshot. However many parts of a policy need it, it is worked out once.

        Args:
            work_out: A pure function. Nobody may change what it returns.
        """
        if work_out not in self._worked_out:
            self._worked_out[work_out] = work_out(self)
        result: T = self._worked_out[work_out]
        return result

    def on(self, node: NodeName) -> tuple[Trial, ...]:
        """Return the live trials with a worker on ``node``."""
        return tuple(trial for trial in self.unended if node in trial.nodes and trial.live)
