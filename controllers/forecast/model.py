"""A sweep as the fluid model sees it: its jobs, its nodes, and what it leaves open."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from controllers.core.devices import NO_DEVICES, Devices
from controllers.policies.kit.device_paces import DeviceSpeeds


@dataclass(frozen=True, slots=True)
class Job:
    """A trial as the model sees it.

    It requests ``cpu`` cores, ``memory`` bytes and ``devices`` of a node when it starts. ``node`` is the number of the
    node where it is, None where it has yet to start. ``at`` is when it can go on or start, in seconds from now; None
    where it is submitted once another ends. It may move ``moves`` times.
    """

    cpu: float
    memory: float
    node: int | None
    at: float | None
    moves: int = 0
    devices: Devices = NO_DEVICES


@dataclass(frozen=True, slots=True)
class ModelNode:
    """A node: its cores, and what of it nobody requests: cores, bytes, devices. The rest is as in ``Node``.

    Its jobs get ``supply`` cores together where others use so much of it that this is less. ``model`` is that of its
    devices, empty where it has none. Of these there are ``to_share``, each counted as often as ``replicas`` says.
    """

    cores: float
    cpu: float
    memory: float
    devices: Devices = NO_DEVICES
    only_for: frozenset[str] = frozenset()
    supply: float = math.inf
    model: str = ""
    replicas: Devices = NO_DEVICES
    to_share: float = 0.0

    @property
    def supplied(self) -> float:
        """Cores that its jobs get together."""
        return min(self.cores, self.supply)


@dataclass(frozen=True, slots=True)
class FluidModel:
    """All jobs in the order of submission, all nodes, and by which rules they share.

    The speed of a job is cores ** ``power``. With ``shortest_first`` the cores of a node go to the job with the least
    left, and from ``calm_at`` seconds on as many as they need to those that would end the sweep. Otherwise they go by
    weight. A job that moves does not train for ``move_s`` seconds. Of one that holds devices, the work is as on the
    fastest of them, alone; ``speeds`` says how much longer it takes on others.
    """

    jobs: Sequence[Job]
    rooms: Sequence[ModelNode]
    power: float = 1.0
    shortest_first: bool = False
    calm_at: float = 0.0
    move_s: float = 0.0
    speeds: DeviceSpeeds = field(default_factory=DeviceSpeeds)


@dataclass(frozen=True, slots=True)
class Course:
    """One way in which the sweep may go on, where the model leaves it open.

    ``works`` (core seconds as on a single core), ``mosts`` (cores that it can use) and ``weights`` are of each job.
    ``ties`` holds a number for each node: of equal ones, the least is taken first. ``moves`` tells whether jobs move,
    ``contention`` which part of its speed each further job takes from all on its node. ``exponent`` is that of
    ``allocate`` where speed grows more slowly than cores. ``waits`` are the seconds for which each job waits in each
    second of work; empty where none does. ``supplies`` are the cores that each node gives; empty where it is as the
    rooms tell.
    """

    works: Sequence[float]
    mosts: Sequence[float]
    weights: Sequence[float]
    ties: Sequence[float]
    moves: bool = True
    contention: float = 0.0
    exponent: float = 1.0
    waits: Sequence[float] = ()
    supplies: Sequence[float] = ()
