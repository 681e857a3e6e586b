"""A run folder that looks like a real one: two policies, twelve trials, four nodes.

A small model of training: trials share their node's cores, the loss falls as steps go by, and under
the second policy trials are judged, resized and moved. The same folder every time.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from controllers.core.results import RunResult, TrialResult
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile

NODES = ("node-1", "node-2", "node-3", "node-4")
CORES = 0.45
STEPS = (40, 44, 90, 52, 60, 150, 48, 70, 64, 130, 56, 46)
INTERVAL = 5
RESUME_S = 3


@dataclass
class Job:
    id: str
    steps: int
    submitted: float
    node: str
    done: float = 0.0
    ended: float | None = None
    category: str = ""
    moves: int = 0
    resizes: int = 0
    cpu: float = 0.25
    away_until: float = 0.0
    first_node: str = ""
    params: dict[str, object] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        return 0.06 + 0.02 * (self.steps % 7) / 7 + 2.2 * math.exp(-5.5 * self.done / self.steps)


@dataclass
class World:
    speculative: bool
    jobs: list[Job]
    events: list[TimelineEvent] = field(default_factory=list)
    now: float = 0.0

    def tell(self, kind: EventKind, job: Job, **fields: object) -> None:
        self.events.append(TimelineEvent(self.now, kind, job.id, **fields))  # type: ignore[arg-type] # a terse helper

    def phase(self, job: Job, phase: str) -> None:
        self.tell(EventKind.PHASE, job, phase=phase, node=job.node, attempt=job.moves + 1, cpu=job.cpu)

    def at_work(self, node: str) -> list[Job]:
        return [j for j in self.jobs if j.node == node and j.ended is None and j.submitted <= self.now]


def write_example_run(state_dir: Path, name: str = "demo-1") -> Path:
    """Write the folder and return it."""
    folder = state_dir / "runs" / name
    about = {
        "name": name,
        "file": "workflows/demo.py",
        "sweep": "demo",
        "policies": ["default", "specon:interval=5+flowcon:interval=5"],
        "seed": 0,
        "nodes": 4,
        "cpus_per_node": CORES,
        "started": "2025-11-20 18:45",
        "objective": "val_loss",
        "direction": "minimize",
        "tracking_uri": "http://127.0.0.1:5000",
        "shares": "cgroup cpu.weight",
    }
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(about))
    for number, policy in enumerate(("default", "specon+flowcon")):
        world = simulated(speculative=number > 0)
        part = folder / f"{number:02d}-{policy.replace('+', '-')}"
        part.mkdir()
        TimelineFile(part / "timeline.jsonl").append(world.events)
        (part / "result.json").write_text(json.dumps(result(policy, world).to_dict()))
    return folder


def simulated(*, speculative: bool) -> World:
    jobs = [
        Job(f"trial-{i}", steps, 4.0 * i, NODES[i % 4], params={"lr": 0.1 / (i + 1), "units": 16 * (1 + i % 4)})
        for i, steps in enumerate(STEPS)
    ]
    world = World(speculative, jobs)
    while any(job.ended is None for job in jobs) and world.now < 10_000:
        tick(world)
        world.now += 1
    return world


def tick(world: World) -> None:
    for job in world.jobs:
        if job.submitted == world.now:
            job.first_node = job.node
            world.phase(job, "pending")
            world.phase(job, "running")
    for node in NODES:
        train(world, node)
    if world.now % INTERVAL == 0:
        for job in world.jobs:
            if job.submitted < world.now and job.ended is None:
                world.tell(EventKind.REPORT, job, value=job.loss, step=int(job.done))
        if world.speculative:
            judge(world)
            move_one(world)


def train(world: World, node: str) -> None:
    present = [job for job in world.at_work(node) if job.away_until <= world.now]
    weight = sum(job.cpu for job in present)
    for job in present:
        if job.away_until == world.now > 0:
            world.phase(job, "running")
        used = CORES * job.cpu / weight
        job.done += used * 3
        if world.now % INTERVAL == 0:
            world.tell(EventKind.USAGE, job, node=node, value=used)
        if job.done >= job.steps:
            job.ended = world.now
            world.phase(job, "succeeded")


def judge(world: World) -> None:
    for job in world.jobs:
        if job.ended is not None or job.submitted >= world.now or job.away_until > world.now:
            continue
        part = job.done / job.steps
        category = "progressing" if part < 0.3 else "watching" if part < 0.45 else "converged"
        if category != job.category:
            job.category = category
            world.tell(EventKind.CATEGORY, job, category=category, value=math.exp(-5.5 * part))
            job.cpu = {"progressing": 0.25, "watching": 0.16, "converged": 0.08}[category]
            job.resizes += 1
            world.tell(EventKind.RESIZE, job, node=job.node, cpu=job.cpu, reason=f"{category}: share by its growth")


def move_one(world: World) -> None:
    load = {node: len(world.at_work(node)) for node in NODES}
    target = min(NODES, key=lambda node: load[node])
    for job in world.jobs:
        if job.ended is None and job.category == "converged" and not job.moves and load[job.node] > load[target] + 1:
            reason = f"growth fell three times in a row; {target} has the least score"
            world.tell(EventKind.MOVE, job, node=target, reason=reason)
            world.phase(job, "moving")
            job.node, job.moves, job.away_until = target, job.moves + 1, world.now + RESUME_S
            return


def result(policy: str, world: World) -> RunResult:
    trials = tuple(
        TrialResult(
            id=job.id,
            submitted_s=job.submitted,
            completed_s=job.ended or world.now,
            node=job.node,
            moves=job.moves,
            attempts=job.moves + 1,
            final_metric=job.loss,
            resizes=job.resizes,
            first_node=job.first_node,
            params=job.params,
        )
        for job in world.jobs
    )
    return RunResult(policy, trials)
