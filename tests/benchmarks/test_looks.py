"""What a look at a local sweep costs in which nothing changes grows no faster than the sweep."""

import cProfile
import pstats
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import pytest
from rich.console import Console

from benchmarks.looks.sweep import ledger_in_its_middle, quiet_sweep
from controllers.core.model import Sample, TrialId
from controllers.driving.assembly import assemble
from controllers.driving.driver import Driver, RealBeats
from controllers.forecast.forecaster import Forecaster
from controllers.record.recorder import Recorder
from controllers.record.silence import SilenceWatch
from controllers.record.timeline import TimelineFile
from controllers.tracking.tag_boards import TagBoard, trial_tags
from controllers.worlds.local.engine_files import StateFile
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.world import LocalWorld
from hera_specon.display.screens import LiveScreen

if TYPE_CHECKING:
    from controllers.worlds.local.attempts import Attempts

LOOKS: Final = 5
TIMES: Final = 10
MARGIN: Final = 1.3
"""A cost that grows with the square of the sweep would be ten times as much again."""


class Sleepers:
    """Attempts that never end, and use no core."""

    def start(self, *_: object) -> tuple[int, ...]:
        return (1,)

    def ended(self) -> list[Ended]:
        return []

    def check_joined(self, *_: object) -> None:
        pass

    def broken(self) -> frozenset[str]:
        return frozenset()

    def cores_used(self, *_: object) -> float:
        return 0.0

    def node_cores_used(self, *_: object) -> float:
        return 0.0

    def cpu_seconds(self, _: LocalJob) -> float:
        return 0.0

    def threads(self, _: LocalJob, part: float) -> int:
        del part
        return 0

    def waited_seconds(self, _: LocalJob) -> float:
        return 0.0

    def memory(self, _: LocalJob) -> float:
        return 0.0

    def share(self, *_: object) -> None:
        pass

    def resize(self, *_: object) -> None:
        pass

    def begins_again(self, _: LocalJob) -> bool:
        return False

    def ask_to_leave(self, _: LocalJob) -> None:
        pass


class Reports:
    """The newest report of each trial that has begun: the same each time."""

    def __init__(self, world: LocalWorld) -> None:
        sample = Sample(value=0.5, step=40, at=100.0, cpu_seconds=20.0, first=2.0, steps_total=100)
        self.newest = {TrialId(job.trial): sample for job in world.jobs() if job.attempt}

    def poll(self) -> dict[TrialId, Sample]:
        return dict(self.newest)


def looks(folder: Path, trials: int, policy: str) -> Callable[[], None]:
    """Return what looks on for some seconds, as ``specon run`` does."""
    sweep = quiet_sweep(folder, trials, policy)
    ledger = ledger_in_its_middle(sweep)
    gated = policy != "default"
    machine, uid = sweep.order.settings.machine({}, gate_first=gated), sweep.folder.uid(0)
    world = LocalWorld(sweep.order.program(uid), uid, machine, cast("Attempts", Sleepers()), ledger)
    terminal = Console(file=StringIO(), force_terminal=True, width=160, height=50)
    chosen = sweep.order.policies[0]
    clock = [100.0]
    engine = assemble(
        chosen,
        world,
        Reports(world),
        StateFile(folder, lambda: clock[0]),
        observers=(
            TagBoard(dict, trial_tags, lambda: None),
            Recorder(TimelineFile(folder / "timeline.jsonl").append, world.cores_used, world.short),
            Forecaster(chosen, world.to_come, ()),
            SilenceWatch(lambda *_: None),
            LiveScreen(terminal),
        ),
    )
    driver = Driver(engine, world, RealBeats(1.0), clock[0])

    def look() -> None:
        for _ in range(LOOKS):
            for _ in range(5):
                clock[0] += 0.2
                driver.advance(clock[0])
            driver.tick(clock[0])

    return look


def calls(folder: Path, trials: int, policy: str) -> int:
    """Return the calls of functions in such looks, once all that can start has started."""
    folder.mkdir()
    look, profile = looks(folder, trials, policy), cProfile.Profile()
    look()
    profile.runcall(look)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined] # not in typeshed


@pytest.mark.parametrize("policy", ["default", "ahead", "promote+ahead"])
def test_looks_at_ten_times_as_many_trials_take_at_most_ten_times_as_many_calls(tmp_path: Path, policy: str) -> None:
    assert calls(tmp_path / "large", 1000, policy) < TIMES * MARGIN * calls(tmp_path / "small", 100, policy)
