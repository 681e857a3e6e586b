"""A gang on this machine: a process for each worker, each within its own node's share, and nothing left of any."""

import json
import os
import signal
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controllers.core.actions import Migrate, Place, Suspend
from controllers.core.model import NodeName, Phase
from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.gangs import GangNotJoinedError, verdict
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.processes import Launcher, LaunchError, ProcessSpec, proctree
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import PodStep, read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, trial_template, workflow

NODES = {"node-1": 0.4, "node-2": 0.4}
HERE, THERE = NodeName("node-1"), NodeName("node-2")


class Marks:
    """Marks the runs that attempts make in MLflow."""

    def environment(self, step: PodStep, attempt: str, *, left: bool) -> dict[str, str]:
        del left
        return {"MLFLOW_RUN_CONTEXT": f"{step.template} {attempt}"}

    def hid_a_failure(self, step: PodStep, attempt: str) -> bool:
        del step, attempt
        return False


class Gang:
    """A world of two nodes and one gang that runs ``program``; its workers meet within ``join_s`` seconds."""

    def __init__(self, folder: Path, program: str, join_s: float, **behaviour: Any) -> None:  # noqa: ANN401 - as Behaviour
        script = folder / "program.py"
        script.write_text(textwrap.dedent(program))
        gang = {"a": Behaviour(**{"workers": 3, "retries": 1} | behaviour)}
        manifest = workflow(gang, lambda name, behaviour: trial_template(name, behaviour, script))
        self.folder = folder
        self.shares = choose_shares(f"gangs-{os.getpid()}")
        self.launcher = Launcher((), grace_s=2.0, log=folder / "launcher.log")
        around = Surroundings(folder, Path.cwd(), dict(os.environ), {}, NODES, Marks())
        self.attempts = Attempts(self.shares, self.launcher, around)
        self.machine = Machine(NODES, 1e9, gate_first=True, join_s=join_s)
        program_read = read_workflow(manifest, "sweep", "uid", {})
        self.world = LocalWorld(program_read, "uid", self.machine, self.attempts, JobLedger())
        self.world.advance(0.0)
        self.began = time.monotonic()

    @property
    def trial(self) -> Any:  # noqa: ANN401 - a Trial, whose fields tests ask for by name
        return self.world.trials()[0]

    @property
    def pids(self) -> tuple[int, ...]:
        (job,) = self.world.jobs()
        return job.pids

    def place(self, *nodes: NodeName) -> None:
        assert self.world.apply(Place(self.trial.id, nodes)).done
        self.drive()

    def drive(self) -> None:
        self.world.advance(time.monotonic() - self.began)
        time.sleep(0.02)

    def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        give_up = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < give_up, f"waited in vain: {self.world.trials()}"
            self.drive()

    def log(self, worker: str = "") -> str:
        return (self.folder / "logs" / f"uid.sweep.a{worker}.log").read_text()

    def close(self) -> None:
        self.launcher.close(0.5)
        self.shares.close()


Start = Callable[..., Gang]
TELL = """
    import json, os, pathlib, sys, time
    folder = pathlib.Path(os.environ["SPECON_STATE_ROOT"], os.environ["SPECON_TRIAL_ID"])
    meeting = folder / "gang" / os.environ["SPECON_ATTEMPT"]
    (meeting / os.environ["RANK"]).touch()
    (folder / f"told-{os.environ['RANK']}").write_text(json.dumps(dict(os.environ)))
"""
WAIT = f"{TELL}    time.sleep(600)\n"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a gang of a program."""
    begun: list[Gang] = []

    def started(program: str, join_s: float = 60.0, **behaviour: Any) -> Gang:  # noqa: ANN401 - as Behaviour has them
        begun.append(Gang(tmp_path, program, join_s, **behaviour))
        return begun[-1]

    yield started
    for gang in begun:
        gang.close()


def told(gang: Gang, workers: int) -> list[dict[str, str]]:
    """Return the environments of the workers by rank, once all have told them."""
    folder = gang.folder / "state" / "uid.sweep.a"
    files = [folder / f"told-{rank}" for rank in range(workers)]
    gang.until(lambda: all(file.exists() and file.read_text() for file in files))
    found = [json.loads(file.read_text()) for file in files]
    for file in files:
        file.unlink()
    return found


def test_workers_know_their_rank_and_share_a_token_that_is_new_for_each_attempt(start: Start) -> None:
    gang = start(WAIT)
    gang.place(HERE, THERE)
    first = told(gang, 2)
    assert [env["RANK"] for env in first] == ["0", "1"]
    assert [env["SPECON_NODE"] for env in first] == [HERE, THERE]
    assert {(env["WORLD_SIZE"], env["SPECON_WORKERS_MAX"]) for env in first} == {("2", "3")}
    assert len({env["SPECON_ATTEMPT"] for env in first}) == 1
    # One that logs without our hooks would log each step again.
    assert ["MLFLOW_RUN_CONTEXT" in env for env in first] == [True, False]
    meetings = gang.folder / "state" / "uid.sweep.a" / "gang"
    assert [path.name for path in meetings.iterdir()] == [first[0]["SPECON_ATTEMPT"]]
    assert gang.world.apply(Migrate(gang.trial.id, (THERE,))).done
    (second,) = told(gang, 1)
    assert (second["RANK"], second["WORLD_SIZE"], second["SPECON_WORKERS_MAX"]) == ("0", "1", "3")
    assert [path.name for path in meetings.iterdir()] == [second["SPECON_ATTEMPT"]]
    assert second["SPECON_ATTEMPT"] != first[0]["SPECON_ATTEMPT"]
    assert gang.world.apply(Suspend(gang.trial.id)).done
    gang.until(lambda: gang.trial.phase is Phase.SUSPENDED)
    assert not meetings.exists()


def test_the_cpu_that_a_gang_uses_is_that_of_all_workers_each_on_its_own_node(start: Start) -> None:
    gang = start(f"{TELL}    while True: pass\n", cpu="300m")
    gang.place(HERE, THERE)
    gang.until(lambda: all(0.2 < node.cpu_used < 0.5 for node in gang.world.nodes()))
    gang.until(lambda: gang.world.cores_used()[gang.trial.id] > 0.5)
    gang.until(lambda: time.monotonic() > gang.began + 4)
    assert gang.world.apply(Suspend(gang.trial.id)).done
    gang.until(lambda: gang.trial.phase is Phase.SUSPENDED)
    (job,) = gang.world.jobs()
    assert job.cpu_seconds > 1.0


def test_a_worker_that_hangs_when_asked_is_killed_after_the_grace_and_the_gang_moves(start: Start) -> None:
    gang = start(f"""{TELL}
    import signal
    deaf = os.environ["RANK"] == "1"
    signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else lambda *_: os._exit(75))
    time.sleep(600)
    """)
    gang.place(HERE, THERE)
    told(gang, 2)
    time.sleep(0.3)
    gang.drive()
    asked, pids = time.monotonic(), gang.pids
    assert gang.world.apply(Migrate(gang.trial.id, (THERE, THERE, HERE))).done
    gang.until(lambda: gang.trial.phase is Phase.RUNNING)
    assert time.monotonic() - asked > 2.0
    assert (gang.trial.nodes, gang.trial.attempt, gang.trial.moves) == ((THERE, THERE, HERE), 2, 1)
    assert not any(map(proctree.alive, pids))


def test_workers_that_do_not_notice_a_lost_one_are_ended_after_the_grace(start: Start) -> None:
    gang = start(f"""{TELL}
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    """)
    gang.place(HERE, THERE, HERE)
    told(gang, 3)
    pids = gang.pids
    os.kill(pids[2], signal.SIGKILL)
    gang.until(lambda: gang.trial.attempt == 2 and gang.trial.steady)
    assert not any(map(proctree.alive, pids))
    (job,) = gang.world.jobs()
    assert (job.failures, job.size, len(job.pids)) == (1, 3, 3)


def test_a_gang_that_leaves_unasked_because_a_worker_did_not_come_has_failed_once(start: Start) -> None:
    gang = start(f"{TELL}    sys.exit(75)\n")
    gang.place(HERE, THERE)
    told(gang, 2)
    gang.until(lambda: gang.world.jobs()[0].failures == 1)


def test_a_gang_of_which_one_worker_cannot_be_started_runs_with_none(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, refused, real = list[int](), list[str](), Launcher.start

    def start_but_one(self: Launcher, spec: ProcessSpec) -> int:
        if spec.key.endswith("1.2"):
            refused.append(spec.key)
            message = "no more processes"
            raise LaunchError(message)
        begun.append(real(self, spec))
        return begun[-1]

    monkeypatch.setattr(Launcher, "start", start_but_one)
    gang = start(WAIT)
    gang.place(HERE, THERE, HERE)
    assert refused == ["uid.sweep.a.1.2"]
    first = list(begun)
    assert len(first) == 2
    gang.until(lambda: gang.trial.attempt == 2 and gang.trial.steady)
    assert not any(map(proctree.alive, first))
    assert gang.log(".worker-2") == "worker 2 of 3 was not started: no more processes\n"
    assert len(told(gang, 3)) == 3


def test_a_program_that_never_joins_the_others_is_named_after_a_bounded_time(start: Start) -> None:
    gang = start("import time; time.sleep(600)", join_s=2.0)
    gang.place(HERE, THERE)
    with pytest.raises(
        GangNotJoinedError, match=r"uid\.sweep\.a: none of its 2 workers began to meet .* 2 seconds have passed"
    ):
        gang.until(lambda: False, within_s=30)


def test_workers_that_have_each_trained_for_itself_are_no_success(start: Start) -> None:
    gang = start("import os; assert os.environ['RANK']")
    gang.place(HERE, THERE)
    with pytest.raises(GangNotJoinedError, match=r"all of them have ended.*join the group of RANK and WORLD_SIZE"):
        gang.until(lambda: False, within_s=30)


def test_one_worker_needs_to_meet_nobody(start: Start) -> None:
    gang = start("import time; time.sleep(3)")
    gang.place(HERE)
    gang.until(lambda: gang.trial.phase.ended)
    assert gang.trial.phase is Phase.SUCCEEDED


def test_a_killed_fork_server_takes_all_workers_along_and_the_gang_starts_again_whole(start: Start) -> None:
    gang = start(WAIT)
    gang.place(HERE, THERE, HERE)
    told(gang, 3)
    pids = gang.pids
    server = proctree.children(proctree.children(os.getpid())[-1])[-1]
    assert set(pids) <= set(proctree.tree(server))
    os.kill(server, signal.SIGKILL)
    gang.until(lambda: gang.trial.attempt == 2 and gang.trial.steady)
    assert not any(map(proctree.alive, pids))
    assert len(told(gang, 3)) == 3


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((0, 0), 0),
        ((75, 75, 75), 75),
        ((0, 75), 75),
        ((76, 75, 76), 76),
        ((76, 137, 76), 137),
        ((75, 1, 137), 1),
    ],
)
def test_the_end_of_a_gang_is_that_of_the_worker_that_was_lost_first(codes: tuple[int, ...], expected: int) -> None:
    assert verdict(codes) == expected
