"""Sweeps and trainings that stop half-way, so that one version writes what another goes on with.

It runs on the code of earlier versions too, so it asks of them only what has long been there.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controllers.core.actions import Migrate, Place
from controllers.core.engine import Engine
from controllers.core.model import NodeName, Phase, TrialId
from controllers.driving.assembly import assemble
from controllers.driving.driver import Driver, VirtualBeats
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, TrialSpec, Workload
from controllers.worlds.simulated.world import SimulatedMetrics, SimulatedWorld
from mlflow_hooks import trial

POLICIES = ("ahead", "promote", "specon:interval=5+flowcon:interval=5")
TRIALS, STEPS, STOP_AT = 8, 12, 6
TRIAL = "skew.s.t0"
UID = "skew-uid"
FIRST_REPORTED_S = 20.0


def scenario() -> Scenario:
    """Eight trials of different lengths on two nodes, where moves and suspensions pay."""
    trials = tuple(
        TrialSpec(
            id=TrialId(f"{UID}.s.t{number}"),
            submitted_at=2.0 * number,
            work_s=work,
            reports=tuple(CurvePoint(work * (n + 1) / 20, 1.0 / (n + 1) + 0.01 * number) for n in range(20)),
            cpu=0.5,
            checkpoint_every_s=5.0,
        )
        for number, work in enumerate((40.0, 90.0, 25.0, 120.0, 60.0, 30.0, 80.0, 50.0)[:TRIALS])
    )
    nodes = (NodeSpec(NodeName("node-1"), 1.0), NodeSpec(NodeName("node-2"), 1.0))
    return Scenario(Workload(trials, nodes), Costs.argo())


class Kept:
    """A store in memory, with the state as text after each tick."""

    def __init__(self, text: str | None = None) -> None:
        self.text = text

    def load(self) -> str | None:
        """Return the state."""
        return self.text

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep ``state``."""
        del urgent
        self.text = state()


class HalfDone:
    """A simulated sweep under a policy, driven as far as it is told; ``restart`` gives it another engine."""

    def __init__(self, policy: str, costs_of: Scenario | None = None) -> None:
        self.policy: Any = parse_policy(policy)
        made = costs_of or scenario()
        self.world = SimulatedWorld(made, gated=Place in self.policy.needs)
        self.source = SimulatedMetrics(self.world, made.costs.metric_delay_s)
        self.beats = VirtualBeats(made.costs.heartbeat_s)
        self.store = Kept()
        self.ticks = 0
        self.restart(self.store)

    def restart(self, store: Kept) -> Engine[Any]:
        """Let an engine that finds what is in ``store`` go on."""
        self.store = store
        engine = assemble(self.policy, self.world, self.source, store)
        self.driver = Driver(engine, self.world, self.beats, self.world.now)
        return engine

    def step(self) -> None:
        """Go on to the next event or tick."""
        if self.world.next_at <= self.driver.due_at and self.world.next_at < float("inf"):
            self.driver.advance(self.world.next_at)
        else:
            self.driver.advance(self.driver.due_at)
            self.driver.tick(self.driver.due_at)
            self.ticks += 1

    def phases(self) -> set[Phase]:
        """Return in which phases trials are."""
        return {one.phase for one in self.world.trials()}


def write_engine_states(folder: Path) -> None:
    """Write the state of each policy's engine while trials move or wait, and when on the sweep's clock that was."""
    folder.mkdir(parents=True)
    for policy in POLICIES:
        sweep = HalfDone(policy)
        wanted = Phase.MOVING if Migrate in sweep.policy.needs else Phase.SUSPENDED
        best: dict[str, Any] = {}
        while not sweep.world.finished:
            sweep.step()
            seen = sweep.phases()
            score = (wanted in seen) + bool({Phase.SUSPENDED, Phase.SUSPENDING} & seen)
            if score > best.get("score", -1) and sweep.world.now > FIRST_REPORTED_S:
                best = {"score": score, "at": sweep.world.now, "phases": sorted(seen), "state": sweep.store.text}
        del best["score"]
        (folder / f"{policy.partition(':')[0]}.json").write_text(json.dumps({"policy": policy, **best}, indent=1))


class Total:
    """The sum so far."""

    value = 0

    def save(self, folder: Path) -> None:
        """Write it."""
        (folder / "total.json").write_text(json.dumps(self.value))

    def load(self, folder: Path) -> None:
        """Read it."""
        self.value = json.loads((folder / "total.json").read_text())


def train(root: Path, token: str, stop_at: int | None = None) -> tuple[int, int, int]:
    """Train one attempt; return its exit code, the step it began with, and the sum it came to."""
    os.environ.update(
        SPECON_STATE_ROOT=str(root), SPECON_TRIAL_ID=TRIAL, SPECON_OBJECTIVE="loss", SPECON_ATTEMPT=token,
        SPECON_SWEEP_ID="skew", SPECON_TRIAL_PARAMS='{"lr": 0.1}',
    )  # fmt: skip
    before, total, began, code = signal.getsignal(signal.SIGTERM), Total(), 0, 0
    try:
        with trial(checkpoint_every_s=0) as t:
            t.track(total, "total")
            began = t.next_step
            for step in t.steps(STEPS):
                total.value += step
                t.log(loss=float(total.value))
                if step == stop_at:
                    os.kill(os.getpid(), signal.SIGTERM)
    except SystemExit as left:
        code = int(str(left.code))
    finally:
        signal.signal(signal.SIGTERM, before)
    return code, began, total.value
