"""One run of a sweep under a controller whose threads go on as a seed says, and that is killed and started again.

The controller is the real one: its loop, its campaigns, the watches, the write queue, the writers of tags and records.
Only what it leans on stands in: threads, time, API server and MLflow.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import pytest

from controllers.cluster.action_report import done_tags
from controllers.cluster.campaign_run import FlushableStore
from controllers.cluster.campaign_world import ReportedUsage
from controllers.core.actions import Assessment
from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.ports import World
from controllers.tracking.mlflow_source import MlflowSource
from controllers.tracking.tag_boards import Compose
from controllers.worlds.argo.meaning.view import Campaign, ClusterView
from controllers.worlds.argo.reading.watch import WatchTiming
from controllers.worlds.argo.world import ArgoWorld
from controllers.worlds.argo.writing import pod_changes
from controllers.worlds.argo.writing.runs import RunOf
from controllers.worlds.argo.writing.state_store import ConfigMapStore
from tests.controllers.cluster.whole_controller import Ports, whole_controller
from tests.controllers.worlds.argo.conftest import Told
from tests.controllers.worlds.argo.fake_api import Store
from tests.controllers.worlds.argo.objects import NAMESPACE
from tests.fault_search.invariants import InvariantError
from tests.interleavings.api import SteppedApi
from tests.interleavings.checks import CheckedWorld, Checks, Unforeseen
from tests.interleavings.perils import Perils
from tests.interleavings.restless import Restless
from tests.interleavings.stand_ins import SteppedEvent, SteppedTime, put_in
from tests.interleavings.steps import Steps
from tests.interleavings.tracker import Tracker, TrackerClient
from tests.interleavings.training import Training

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

ENDS: Final = "the sweep ends"
TAGS_IN_THE_END: Final = "tags tell in the end what was decided"
MOST_STEPS: Final = 60_000
TIME_PASSES: Final = 0.05
"""How often time passes although some thread could go on."""
_DOWN_S: Final = 2.0
_SETTLING_S: Final = 60.0
"""How long tags that MLflow refused may still be written after the end of the sweep."""
_TIMING: Final = WatchTiming(watch_s=5.0, relist_s=20.0, first_wait_s=0.2, most_wait_s=1.0)


@dataclass(frozen=True)
class Explored:
    """What a run came to: the invariant that it broke, if any, and how far it went."""

    seed: int
    violation: InvariantError | None
    points: int
    crashes: int
    moves: int
    trace: Sequence[str]

    def story(self) -> str:
        """Return how to see it again, and its last steps, for a test that fails."""
        told = f"seed {self.seed}, {self.crashes} crashes, {self.points} write points: {self.violation}"
        return "\n".join((told, *self.trace))


def explore(
    seed: int, crash_at: int | None = None, spoil: Callable[[pytest.MonkeyPatch], None] | None = None
) -> Explored:
    """Run a sweep to its end, or to the first invariant that is broken.

    Args:
        seed: of all chance in it.
        crash_at: the write point at which the controller is killed; 0 for none, None for some by chance.
        spoil: breaks something on purpose.
    """
    with pytest.MonkeyPatch.context() as patch:
        run = _Run(seed, crash_at, patch)
        if spoil is not None:
            spoil(patch)
        log = logging.getLogger("controllers")
        log.addHandler(run.unforeseen)
        try:
            return run.to_its_end()
        finally:
            log.removeHandler(run.unforeseen)


class _Run:
    def __init__(self, seed: int, crash_at: int | None, patch: pytest.MonkeyPatch) -> None:
        self._seed = seed
        self._steps = Steps(seed)
        self._perils = Perils(self._steps, crash_at)
        self._tracker = Tracker(lambda: self._steps.now)
        self._tags: dict[str, dict[str, str]] = {}
        store = Store()
        self._checks = Checks(store)
        self.unforeseen = Unforeseen(self._checks.broken)
        # Every other run goes without exec and evictions.
        self._training = Training(self._steps, store, self._tracker, self._checks, grants_all=seed % 2 == 0)
        self._api = SteppedApi(self._training, self._perils, self._checks)
        put_in(self._steps, patch)
        patch.setattr(pod_changes, "execute", self._api.execute)
        patch.setattr("controllers.cluster.campaign_run.parse_policy", lambda _: Restless(seed))
        # What it foresees takes most of the time here, and writes nothing in a way of its own.
        patch.setattr("controllers.driving.drivers.Forecaster", _Unforeseen)
        stepped = SteppedTime(self._steps)
        source = partial(MlflowSource, epoch=stepped.time, clock=stepped.monotonic)
        patch.setattr("controllers.cluster.campaign_run.MlflowSource", source)
        patch.setattr("controllers.cluster.campaign_run.done_tags", self._noted_tags)

    def _noted_tags(self, parent_of: Callable[[str], str | None]) -> Compose:
        """Return what makes tags as ever, and notes for each trial what its run is to show."""
        compose = done_tags(parent_of)

        def noted(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
            tags = self._tags[trial.id] = compose(trial, assessment, reason)
            return tags

        return noted

    def to_its_end(self) -> Explored:
        """Go on until everything is over and on record."""
        self._steps.start("loop", self._live)
        over_at = math.inf
        for _ in range(MOST_STEPS):
            if self._checks.found or self._steps.now > over_at + _SETTLING_S:
                break
            if over_at == math.inf and self._is_over():
                over_at = self._steps.now
            self._step()
        else:
            self._checks.broken(ENDS, f"not within {MOST_STEPS} steps and {self._steps.now:.0f} s: {self._progress()}")
        if not self._checks.found:
            self._check_the_end()
        self._steps.kill()
        moves = sum(self._training.moves_made(job.id) for job in self._training.jobs)
        violation = self._checks.found[0] if self._checks.found else None
        crashes = self._perils.crashes
        return Explored(self._seed, violation, self._perils.points, crashes, moves, tuple(self._steps.trace))

    def _live(self) -> None:
        """Be a controller, from its start to its kill."""
        ports = Ports(
            api=self._api,
            client=cast("MlflowClient", TrackerClient(self._tracker, self._perils, self._checks)),
            namespaces=[NAMESPACE],
            worlds=lambda view: _Worlds(view, self._checks, self._training.moves_made),
            clock=SteppedTime(self._steps),
            timing=_TIMING,
        )
        with whole_controller(ports) as (loop, _):
            loop.run(SteppedEvent(self._steps))  # type: ignore[arg-type]  # it asks only whether it is set

    def _step(self) -> None:
        """Let one thread go on, or one thing happen in the cluster, or time pass."""
        steps = self._steps
        self._perils.calm = self._training.over
        if not self._perils.calm and steps.chance.random() < TIME_PASSES and steps.pass_time():
            return
        ready, doings = steps.ready(), list(self._training.doings())
        if not ready and not doings:
            if not steps.pass_time():
                self._checks.broken("every thread waits for something that comes", str(steps.mishaps))
            return
        weights = [*(actor.weight for actor in ready), *(1.0 for _ in doings)]
        (number,) = steps.chance.choices(range(len(weights)), weights)
        if number < len(ready):
            steps.go(ready[number])
        else:
            what, happen = doings[number - len(ready)]
            steps.trace.append(f"{steps.now:8.2f}  {what}")
            happen()
        for mishap in steps.mishaps:
            self._checks.broken("no thread dies of an error", mishap)
        if self._perils.crashing:
            self._crash()

    def _crash(self) -> None:
        """Kill the controller with all its threads, and start another."""
        steps = self._steps
        steps.trace.append(f"{steps.now:8.2f}  the controller is killed")
        steps.kill()
        self._perils.crashed()
        self._checks.crashed()
        # Meanwhile the trials go on.
        steps.now += _DOWN_S
        for _ in range(steps.chance.randrange(20)):
            doings = list(self._training.doings())
            if doings:
                _, happen = steps.chance.choice(doings)
                happen()
        self._steps.start("loop", self._live)

    def _is_over(self) -> bool:
        return self._training.over and [run.status for run in self._tracker.parents] == ["FINISHED"]

    def _progress(self) -> str:
        jobs = ", ".join(f"{job.name} {job.done}/{job.steps} in {len(job.attempts)}" for job in self._training.jobs)
        return f"{jobs}; parent runs: {[run.status for run in self._tracker.parents]}"

    def _check_the_end(self) -> None:
        """Check that MLflow has it all: of each trial its tags and its sweep, and the result of that."""
        (parent,) = self._tracker.parents
        if "result.json" not in parent.texts:
            self._checks.broken("a sweep that ended has its result", str(sorted(parent.texts)))
        for job in self._training.jobs:
            run = self._tracker.trials.get(job.id)
            if run is None:
                continue
            lacks = {name: tag for name, tag in self._tags.get(job.id, {}).items() if run.tags.get(name) != tag}
            if lacks:
                self._checks.broken(TAGS_IN_THE_END, f"{job.name} lacks {lacks}: it has {run.tags}")
            if run.tags.get("mlflow.parentRunId") != parent.id:
                self._checks.broken(TAGS_IN_THE_END, f"{job.name} is not nested under its sweep")


class _Worlds:
    """Makes the checked world of a campaign, and its store."""

    def __init__(self, view: ClusterView, checks: Checks, moves_made: Callable[[str], int]) -> None:
        self._view = view
        self._checks = checks
        self._moves_made = moves_made

    def open(
        self, campaign: Campaign, now: Callable[[], float], run_of: RunOf, reports: ReportedUsage
    ) -> tuple[World, FlushableStore]:
        """Return both."""
        del run_of, reports  # trials here have the hooks
        world = ArgoWorld(self._view, campaign, events=Told())
        return CheckedWorld(world, self._checks, self._moves_made), ConfigMapStore(self._view.api, campaign, now)


class _Unforeseen:
    """An observer in the place of the forecaster."""

    def __init__(self, *_: object) -> None:
        """Take whatever a forecaster takes."""

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Foresee nothing."""
