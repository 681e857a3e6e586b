"""How many attempts run at a time: by what they use of cores and memory, and by what was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controllers.core import labels
from controllers.core.model import Phase
from controllers.worlds.local.admission import Admission
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.gauge import MemoryThere
from controllers.worlds.local.job_book import JobBook
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.room import Machine
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract

GB = 2.0**30
NODE = "node-1"
PLENTY = MemoryThere(1000 * GB, 900 * GB)


@dataclass
class Fake:
    """A machine and its attempts: what they use from one look to the next."""

    cores: dict[str, float] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    there: MemoryThere = PLENTY
    waited: float | None = None
    kills: int = 0
    idle: float = 0.0
    now: float = 0.0

    def cpu_seconds(self, job: LocalJob) -> float:
        return self.cores.get(job.id, 1.0) * self.now

    def waited_seconds(self, job: LocalJob) -> float | None:
        del job
        return None if self.waited is None else self.waited * self.now

    def memory(self, job: LocalJob) -> float:
        return self.held.get(job.id, 0.0)

    def idle_seconds(self) -> float:
        return self.idle * self.now

    def memory_kills(self) -> int:
        return self.kills


class Machines:
    """An admission to one node, with jobs that come and go."""

    def __init__(self, cores: float = 2.0, jobs: int | None = None, step: PodStep | None = None) -> None:
        self.step = step or trial_step("any")
        self.fake = Fake()
        self.book = JobBook({})
        machine = Machine({NODE: cores}, 1000 * GB, jobs=jobs)
        self.admission = Admission(machine, self.book, self.fake, _Gauge(self.fake))
        self.admission.expect(self.step)

    def start(self, *names: str, uses: float = 1.0, held: float = 0.0) -> None:
        for name in names:
            step = replace(self.step, id=name, env={contract.ENV_TRIAL_ID: name})
            self.book[name] = LocalJob(
                step, 0.0, step.cpu, Phase.RUNNING, nodes=(NODE,), attempt=1, started_at=self.fake.now
            )
            self.fake.cores[name], self.fake.held[name] = uses, held

    def end(self, name: str, **changes: Any) -> Ended:  # noqa: ANN401 - any field of Ended
        job = self.book[name]
        ended = replace(Ended(job.key, 0, 0.0), **changes)
        self.peak = self.admission.ended(job, ended)
        self.book[name] = replace(job, phase=Phase.SUCCEEDED, ended_at=self.fake.now)
        return ended

    def pass_s(self, seconds: float) -> None:
        until = self.fake.now + seconds
        while self.fake.now < until:
            self.fake.now += 0.5
            self.admission.look(self.fake.now)

    @property
    def room(self) -> float:
        left = 2.0 - sum(job.step.cpu for job in self.book.holding)
        return self.admission.let_in.bounds.get(NODE, left)


class _Gauge:
    def __init__(self, fake: Fake) -> None:
        self._fake = fake

    def idle_seconds(self) -> float:
        return self._fake.idle_seconds()

    def memory(self) -> MemoryThere:
        return self._fake.there

    def memory_kills(self) -> int:
        return self._fake.kills


def trial_step(name: str, cpu: float = 1.0, *, guessed: bool = True, **changes: Any) -> PodStep:  # noqa: ANN401 - fields
    step = PodStep(name, "train", ("true",), labels={labels.LABEL_SWEEP: "s"}, cpu=cpu, cpu_guessed=guessed)
    return replace(step, **changes)


def test_a_trial_for_each_core_starts_and_no_more_while_they_compute() -> None:
    machines = Machines()
    assert machines.room == 2.0
    machines.start("a", "b")
    machines.pass_s(30)
    assert machines.room == 0.0


def test_trials_that_wait_make_room_once_they_have_told_for_ten_seconds() -> None:
    machines = Machines()
    machines.start("a", "b", uses=0.1)
    machines.fake.idle = 1.8
    machines.pass_s(9)
    assert machines.room == 0.0
    machines.pass_s(12)
    assert machines.room == pytest.approx(1.78)
    machines.start("c")
    assert machines.room == pytest.approx(0.78)


@pytest.mark.parametrize(("waited", "idle"), [(None, 0.0), (0.9, 2.0)])
def test_trials_that_others_keep_from_the_cores_make_no_room(waited: float | None, idle: float) -> None:
    machines = Machines()
    machines.fake.waited, machines.fake.idle = waited, idle
    machines.start("a", "b", uses=0.1)
    machines.pass_s(30)
    assert machines.room == 0.0


def test_trials_that_wait_for_no_core_make_room_though_others_use_all() -> None:
    machines = Machines()
    machines.fake.waited = 0.0
    machines.start("a", "b", uses=0.1)
    machines.pass_s(30)
    assert machines.room == pytest.approx(1.78)


def test_a_request_that_was_named_is_a_reservation_whatever_is_used() -> None:
    machines = Machines(step=trial_step("any", guessed=False))
    machines.start("a", "b", uses=0.1)
    machines.fake.idle = 1.8
    machines.pass_s(30)
    assert NODE not in machines.admission.let_in.bounds
    assert machines.admission.let_in.limits == {NODE: 2.0}


def test_as_many_run_as_were_asked_for_whatever_the_cores() -> None:
    machines = Machines(jobs=5)
    assert machines.room == 5.0
    machines.start("a", "b", "c", "d")
    assert machines.room == 1.0
    machines.start("e")
    machines.pass_s(30)
    assert (machines.room, machines.admission.let_in.more) == (0.0, 0)


def test_of_trials_with_a_request_no_more_run_than_were_asked_for() -> None:
    machines = Machines(jobs=3, step=trial_step("any", 0.1, guessed=False))
    machines.start("a", "b")
    assert machines.room == pytest.approx(0.1)


def test_trials_wait_for_memory_and_start_as_it_becomes_free() -> None:
    machines = Machines(cores=8.0)
    machines.fake.there = MemoryThere(4 * GB, 3.5 * GB)
    machines.pass_s(1)
    assert machines.admission.let_in.more == 3
    machines.start("a", held=GB)
    machines.end("a")
    machines.pass_s(1)
    assert machines.peak == 0.0  # nobody looked
    machines.start("b", held=GB)
    machines.fake.there = MemoryThere(4 * GB, 2.5 * GB)
    machines.pass_s(1)
    machines.end("b")
    machines.fake.there = MemoryThere(4 * GB, 3.6 * GB)
    machines.pass_s(1)
    assert (machines.peak, machines.admission.let_in.more) == (GB, 3)
    machines.start("c", "d", "e")
    assert machines.admission.let_in.more == 0


def test_what_a_short_trial_came_to_between_two_looks_counts_for_those_after_it() -> None:
    machine = Machines()
    machine.fake.there = MemoryThere(8 * GB, 8 * GB)
    machine.start("a", held=0.5 * GB)
    machine.pass_s(0.5)
    machine.fake.held["a"] = 6 * GB
    machine.pass_s(0.5)
    machine.end("a")
    assert machine.peak == 6 * GB
    assert machine.admission.let_in.more == 1


def test_one_trial_starts_where_nothing_runs_however_little_memory_there_is() -> None:
    machines = Machines()
    machines.fake.there = MemoryThere(GB, 0.1 * GB)
    machines.pass_s(1)
    assert machines.admission.let_in.more == 1
    machines.start("a")
    assert machines.admission.let_in.more == 0


@pytest.mark.parametrize(
    ("ended", "kills", "available", "for_memory"),
    [
        ({"code": 137, "memory_kills": 1}, 0, 900 * GB, True),
        ({"code": 1, "memory_kills": 1}, 0, 900 * GB, True),
        ({"code": 137}, 1, 900 * GB, True),
        ({"code": 137}, 0, 1 * GB, True),
        ({"code": 137}, 0, 900 * GB, False),
        ({"code": 1}, 1, 1 * GB, False),
        ({"code": 0, "memory_kills": 1}, 1, 1 * GB, False),
    ],
)
def test_who_was_killed_for_memory_is_told_from_who_was_killed(
    ended: Mapping[str, int], kills: int, available: float, *, for_memory: bool
) -> None:
    machines = Machines()
    machines.start("a")
    machines.pass_s(20)
    machines.fake.there = MemoryThere(1000 * GB, available)
    machines.pass_s(1)
    machines.fake.kills = kills
    end = machines.end("a", **ended)
    assert machines.admission.killed_for_memory(machines.book["a"], end, machines.peak) is for_memory


def test_a_trial_that_ran_into_its_own_limit_has_simply_failed() -> None:
    machines = Machines(step=trial_step("any", memory_limit=GB))
    machines.start("a")
    machines.pass_s(1)
    end = machines.end("a", code=137, memory_kills=1)
    assert not machines.admission.killed_for_memory(machines.book["a"], end, machines.peak)


def test_one_that_was_killed_for_memory_waits_until_nothing_else_runs_and_then_runs_alone() -> None:
    machines = Machines(cores=8.0)
    machines.start("a", "b")
    lonely = replace(machines.book["a"], phase=Phase.PENDING, nodes=(), alone=True)
    machines.book["a"] = lonely
    assert "killed for memory" in (machines.admission.why_held_up(lonely) or "")
    machines.end("b")
    assert machines.admission.why_held_up(lonely) is None
    machines.book["a"] = replace(lonely, phase=Phase.RUNNING, nodes=(NODE,))
    assert machines.admission.let_in.more == 0


def test_each_of_those_that_run_at_a_time_has_an_even_part_of_the_cores() -> None:
    machines = Machines(cores=16.0)
    machines.start("a")
    for trials, part in ((100, 1.0), (16, 1.0), (4, 4.0), (1, 16.0)):
        assert [now for _, now in machines.admission.parts(trials)] == [part]
        assert machines.admission.part(machines.book["a"], (NODE,), trials) == part


def test_where_memory_holds_few_these_few_have_the_cores() -> None:
    machines = Machines(cores=16.0)
    machines.fake.there = MemoryThere(4 * GB, 3.5 * GB)  # it is one of three
    machines.pass_s(1)
    machines.start("a")
    job = machines.book["a"]
    assert list(machines.admission.parts(100)) == [(job, 16.0 / 3)]
    assert machines.admission.part(job, (NODE,), 100) == 1.0  # nobody has told what it needs
