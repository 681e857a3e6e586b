"""How many trials run at a time on this machine, with real processes, placed by the world and by a policy."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from controllers.core.actions import Place
from controllers.core.model import Phase
from controllers.worlds.local import admission
from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.gauge import MemoryThere, ThisMachine
from controllers.worlds.local.jobs import JobLedger, LocalJob
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, trial_template, workflow

NODE = "node-1"
GB = 2.0**30
SLEEPING = ("sleep", "600")
BUSY = ("sh", "-c", "while :; do :; done")
TELLING = ("sh", "-c", "echo $OMP_NUM_THREADS > $SPECON_STATE_ROOT/threads-$SPECON_TRIAL_ID; exec sleep 600")


class Told(ThisMachine):
    """This machine, with as much memory as is told, and idle cores that others leave alone."""

    def __init__(self) -> None:
        super().__init__()
        self.there = MemoryThere(100 * GB, 90 * GB)
        self.kills = 0
        self.idle = 2.0

    def memory(self) -> MemoryThere:
        return self.there

    def memory_kills(self) -> int:
        return self.kills

    def idle_seconds(self) -> float:
        return self.idle * time.monotonic()


class Sweep:
    """Trials that name no request, on one node of two cores."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack, self.gauge = folder, stack, Told()

    def begin(
        self, command: Sequence[str], trials: int = 6, *, gated: bool = False, jobs: int | None = None
    ) -> "Sweep":
        manifest = workflow({f"t{number}": Behaviour(retries=0) for number in range(trials)}, trial_template)
        for template in manifest["spec"]["templates"][:-1]:
            template["container"] |= {"command": list(command), "args": [], "resources": {}}
        shares = choose_shares(f"at-a-time-{os.getpid()}")
        self._stack.callback(shares.close)
        launcher = Launcher((), grace_s=2.0, log=self.folder / "launcher.log")
        self._stack.callback(launcher.close, 0.5)
        around = Surroundings(self.folder, self.folder, dict(os.environ), {}, {NODE: 2.0})
        machine = Machine({NODE: 2.0}, 100 * GB, gate_first=gated, jobs=jobs)
        program = read_workflow(manifest, "sweep", "uid", {}, [2.0])
        attempts = Attempts(shares, launcher, around)
        self.world = LocalWorld(program, "uid", machine, attempts, JobLedger(), self.gauge)
        self._began = time.monotonic()
        self.drive()
        return self

    def drive(self, seconds: float = 0.0) -> None:
        until = time.monotonic() + seconds
        while True:
            self.world.advance(time.monotonic() - self._began)
            if time.monotonic() >= until:
                return
            time.sleep(0.02)

    def until_running(self, count: int, within_s: float = 30.0) -> None:
        deadline = time.monotonic() + within_s
        while len(self.running) < count:
            assert time.monotonic() < deadline, f"{len(self.running)} run: {self.world.trials()}"
            self.drive(0.05)

    @property
    def running(self) -> list[LocalJob]:
        return [job for job in self.world.jobs() if job.placed]

    def kill(self, name: str) -> None:
        (job,) = [job for job in self.running if job.trial.endswith(name)]
        os.kill(job.pids[0], signal.SIGKILL)


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweep]:
    """A sweep whose trials tell after two seconds what they use."""
    monkeypatch.setattr(admission, "SETTLED_S", 1.8)
    monkeypatch.setattr(admission, "LATE_S", 0.8)
    monkeypatch.setattr(admission, "LOOK_S", 0.2)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as stack:
        yield Sweep(tmp_path, stack)


def test_trials_that_wait_let_others_start(sweep: Sweep) -> None:
    sweep.begin(SLEEPING)
    assert len(sweep.running) == 2
    sweep.until_running(6)


def test_trials_that_compute_keep_their_cores(sweep: Sweep) -> None:
    sweep.gauge.idle = 0.0
    sweep.begin(BUSY)
    sweep.drive(4.0)
    assert len(sweep.running) == 2


def test_a_policy_that_places_trials_is_told_of_the_room(sweep: Sweep) -> None:
    sweep.begin(SLEEPING, gated=True)
    (node,) = sweep.world.nodes()
    assert node.room is None
    waiting = [trial for trial in sweep.world.trials() if trial.waits]
    assert all(sweep.world.apply(Place(trial.id, (node.name,))).done for trial in waiting[:2])
    assert not sweep.world.apply(Place(waiting[2].id, (node.name,))).done
    sweep.until_running(2)
    deadline = time.monotonic() + 20
    while not (sweep.world.nodes()[0].room or 0.0) >= 1.0:
        assert time.monotonic() < deadline, sweep.world.nodes()
        sweep.drive(0.1)
    assert sweep.world.nodes()[0].cpu == 2.0
    assert sweep.world.apply(Place(waiting[2].id, (node.name,))).done


def test_as_many_run_as_were_asked_for(sweep: Sweep) -> None:
    sweep.begin(SLEEPING, jobs=4)
    sweep.drive(2.0)
    assert len(sweep.running) == 4


def test_no_trial_starts_for_which_there_is_no_memory(sweep: Sweep) -> None:
    sweep.gauge.there = MemoryThere(GB, 0.5 * GB)
    sweep.begin(SLEEPING)
    sweep.drive(0.7)
    assert len(sweep.running) == 1
    sweep.gauge.there = MemoryThere(100 * GB, 90 * GB)
    sweep.until_running(2)


def test_one_that_is_killed_for_memory_runs_again_alone_and_fails_the_second_time(sweep: Sweep) -> None:
    sweep.begin(SLEEPING, 2)
    sweep.drive(0.6)
    sweep.gauge.kills = 1
    sweep.kill(".t0")
    sweep.drive(0.5)
    (other,) = sweep.running
    assert other.trial.endswith(".t1")
    lonely = next(job for job in sweep.world.jobs() if job.trial.endswith(".t0"))
    assert (lonely.phase, lonely.alone, lonely.memory_kills, lonely.failures) == (Phase.PENDING, True, 1, 0)
    assert lonely.memory_peak > 0
    os.kill(other.pids[0], signal.SIGTERM)
    sweep.drive(1.0)
    (lonely,) = sweep.running
    sweep.gauge.kills = 2
    sweep.kill(".t0")
    sweep.drive(0.5)
    ended = next(job for job in sweep.world.jobs() if job.trial.endswith(".t0"))
    assert (ended.phase, ended.attempt, ended.failures) == (Phase.FAILED, 2, 1)


def test_threads_are_a_trials_part_of_the_cores_and_its_hooks_are_told_as_that_grows(sweep: Sweep) -> None:
    sweep.begin(TELLING, 2)
    sweep.drive(1.0)
    told = {path.read_text().strip() for path in (sweep.folder / "state").glob("threads-*")}
    assert told == {"1"}
    parts = {path.name: path.read_text() for path in (sweep.folder / "cpus").iterdir()}
    assert set(parts.values()) == {"1"}
    sweep.kill(".t0")
    sweep.drive(1.0)
    assert (sweep.folder / "cpus" / "uid.sweep.t1").read_text() == "2"
