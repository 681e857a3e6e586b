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
    """The newest report of a trial's training, as a metric source found it.

    ``value`` may be NaN or infinite: it is what was logged. ``cpu_seconds`` counts over all attempts, and so does
    ``cpu_wait``: the seconds for which its threads waited for a CPU, each counted. ``best`` is the best value so far,
    from a source that knows of values which no poll has shown. ``training`` tells one training of the trial from
    another that began again from nothing; empty where there is only one. ``begun_again`` is how often that was seen in
    what it logged. ``also`` has the newest values of what its sweep wants beside its first objective
    (``Aims.metrics``), by name; only finite ones. ``remark`` is what a person should know of the value, such as that
    its step is not the greatest; empty for nothing.
    """

    value: float
    step: int
    at: float
    cpu_seconds: float | None = None
    first: float | None = None
    steps_total: int | None = None
    best: float | None = None
    training: str = ""
    cpu_wait: float | None = None
    also: tuple[tuple[str, float], ...] = ()
    remark: str = ""
    begun_again: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of a trial's training by now; only finite values get in.

    ``first`` and ``best`` normalise the objective; ``dropped`` counts NaN and infinite reports, and
    ``dropped_report`` is time and step of the newest of them, so that reading it again does not count it again.
    ``training`` is that of the reports: what was known of an earlier one does not count. ``also`` is the newest
    sample's.
    """

    first: float
    best: float
    latest: float
    step: int
    at: float
    cpu_seconds: float | None = None
    steps_total: int | None = None
    dropped: int = 0
    dropped_report: tuple[float, int] | None = None
    training: str = ""
    cpu_wait: float | None = None
    also: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Goals:
    """What a trial's author wants of it; None where they asked for nothing.

    ``deadline_at`` is when it shall have ended, in seconds of the sweep's clock; ``target`` the objective's value that
    is good enough; ``seconds_per_step`` the time that a step shall take.
    """

    deadline_at: float | None = None
    target: float | None = None
    seconds_per_step: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One training job of a sweep over all its attempts, as its world sees it now.

    A trial of more than one worker, or that may get more than one, is a gang: its workers start and end together.
    ``cpu`` is the share that each worker has now (cores requested), ``base_cpu`` what its author asked for each;
    ``memory`` (bytes) and ``devices`` are each worker's too. ``nodes`` names the node of each worker by rank, the same
    node perhaps several times; empty while unplaced. ``workers`` is how many it has, or starts with unless a ``Place``
    says otherwise: from ``min_workers`` to ``max_workers``. ``attempt`` counts from 1, ``moves`` the completed moves
    between nodes, ``suspensions`` how often it was suspended. ``gated`` tells that its next attempt waits for a
    ``Place``: the first of a pending trial, or that of a suspended one; the world itself releases all others, unless it
    leaves those of a gang that was lost to a ``Place`` too. ``withheld`` tells that somebody keeps it from starting for
    now, its owner or another part of the policy: then it neither waits nor is about to take room. A worker holds its
    ``devices`` alone. ``parameters`` are its hyperparameters. ``diverged`` tells that the newest value of its objective
    is NaN or infinite. ``search`` is the text of the search that gives the trial its parameters when it first starts;
    empty where its author gave them. ``sweep`` is the name of its sweep: only objectives of one sweep can be compared.
    ``destination`` names the node of each worker of the attempt that a move leads to, by rank; empty where it leads
    nowhere yet. ``may_use`` are the nodes to which selectors, affinity and taints let it go, None where these keep it
    off none. ``threads`` is with how many each worker was told to compute, 0 where nobody told it. ``may_ask`` are the
    kinds of nodes to which they would let it go, by name, None where they keep it off none. ``direction`` is that of
    the first objective, ``aims`` what its sweep wants beside that. ``lineage`` are the trials whose checkpoints it went
    on from, one for each ``Clone``.
    """

    id: TrialId
    phase: Phase
    cpu: float
    base_cpu: float
    memory: float
    direction: Direction
    submitted_at: float
    nodes: tuple[NodeName, ...] = ()
    attempt: int = 0
    moves: int = 0
    workers: int = 1
    min_workers: int = 1
    max_workers: int = 1
    destination: tuple[NodeName, ...] = ()
    gated: bool = False
    progress: Progress | None = None
    goals: Goals = Goals()
    devices: Devices = NO_DEVICES
    parameters: Parameters = ()
    suspensions: int = 0
    diverged: bool = False
    search: str = ""
    sweep: str = ""
    may_use: frozenset[NodeName] | None = None
    threads: int = 0
    may_ask: frozenset[str] | None = None
    aims: Aims = NO_AIMS
    lineage: tuple[TrialId, ...] = ()
    withheld: bool = False

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
    """A place for trials: ``cpu`` cores and ``memory`` bytes to give, ``cpu_used`` cores busy now.

    ``devices`` are those that trials may hold; of these, ``devices_starting`` are held by attempts that were placed and
    have yet to run, which no trial shows. A trial may come only if it asks for every kind in ``only_for``: owners of
    scarce devices keep all others away. Nodes of the same ``zone`` are near each other; empty where nobody says.
    ``supply`` is how many cores its trials get together, where others use so much of it that this is less. ``room``
    is for how many cores of requests trials may start now, where requests alone do not tell: that is more than ``cpu``
    leaves where trials use less than they request, and less where something else is short. None elsewhere.
    ``leaves_at`` is by when its trials must have left, in seconds of the sweep's clock, None where it stays: it takes
    no new ones then, so it is not ``ready``. ``kind`` is the name of its ``NodeKind``, empty where nobody tells, and
    ``price`` what an hour of it costs, None where nobody knows. Devices of one ``device_model`` are as fast as each
    other; empty where nobody tells. ``replicas`` names the kinds whose devices are each counted several times, as often
    as trials share one.
    """

    name: NodeName
    cpu: float
    memory: float = math.inf
    cpu_used: float = 0.0
    ready: bool = True
    devices: Devices = NO_DEVICES
    devices_starting: Devices = NO_DEVICES
    only_for: frozenset[str] = frozenset()
    zone: str = ""
    supply: float = math.inf
    room: float | None = None
    leaves_at: float | None = None
    kind: str = ""
    price: float | None = None
    device_model: str = ""
    replicas: Devices = NO_DEVICES

    @property
    def supplied(self) -> float:
        """Cores that its trials get together: requests are counted by ``cpu``, what is done by these."""
        return min(self.cpu, self.supply)


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A kind of nodes that an autoscaler can add, as far as it is known.

    ``cpu`` cores, ``memory`` bytes and ``devices`` are what an empty one has for trials; as with nodes, a trial may
    come only if it asks for every kind in ``only_for``. ``boots_s`` are the seconds from the request for one until it
    takes trials. ``more`` is how many there can be beside those that are there and those that are ``coming``: these
    were asked for and are not ready yet. ``price`` is what an hour of one costs, None where nobody knows; one that is
    ``spot`` may be taken away at any time. A kind without a name stands for unknown nodes, since nobody can tell
    whether any comes: a trial at a time may try.
    """

    name: str
    cpu: float
    memory: float = math.inf
    devices: Devices = NO_DEVICES
    only_for: frozenset[str] = frozenset()
    zone: str = ""
    boots_s: float = 120.0
    more: float = math.inf
    coming: int = 0
    price: float | None = None
    spot: bool = False

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
    """All that a policy may look at. Trials, nodes and kinds are sorted by name, in whatever order they were given.

    ``asked`` is what owners ask of trials that have not ended, ``kinds`` what nodes can come. ``let_go`` are the trials
    that were let go without a node and have none yet, and since when, in seconds of the sweep's clock. ``spent`` is
    what the sweep has cost so far, None where no price is known. ``earlier`` is what was learnt before it began.
    """

    now: float
    trials: tuple[Trial, ...]
    nodes: tuple[Node, ...]
    asked: Mapping[TrialId, Ask] = field(default_factory=dict)
    kinds: tuple[NodeKind, ...] = ()
    let_go: Mapping[TrialId, float] = field(default_factory=dict)
    spent: float | None = None
    earlier: Earlier = NOTHING_EARLIER
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
