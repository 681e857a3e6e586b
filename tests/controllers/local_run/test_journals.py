"""What trials journal is read as it grows, and believed before what MLflow has of it."""

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from controllers.core import labels
from controllers.core.model import Phase, Sample, TrialId
from controllers.core.results import RunResult
from controllers.local_run.journals import JournalReader, OverJournals
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.views import result_of
from controllers.worlds.local.workflow import PodStep
from hera_specon.display.tables import warnings
from hera_specon.records.comparison import comparison_rows
from mlflow_hooks import contract
from mlflow_hooks.bounds import JOURNAL_PIECE
from mlflow_hooks.journal import POINTS, Journal
from mlflow_hooks.points import Point

TRIAL = TrialId("uid.s.a")


def job(phase: Phase = Phase.RUNNING) -> LocalJob:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    step = PodStep("a", "t", ("x",), env={contract.ENV_TRIAL_ID: TRIAL}, labels={labels.LABEL_SWEEP: "s"})
    return replace(LocalJob(replace(step, annotations=notes), 0.0, 1.0), phase=phase, attempt=1)


def log(root: Path, *losses: float, first: int = 0) -> None:
    (root / TRIAL).mkdir(exist_ok=True)
    journal = Journal(root / TRIAL)
    journal.append([Point("loss", loss, first + step, 1000 * (first + step)) for step, loss in enumerate(losses)])
    journal.close()


def test_what_is_new_is_added_and_where_nothing_is_the_sample_is_the_same(tmp_path: Path) -> None:
    reader = JournalReader(tmp_path, lambda: [job()], float)
    assert reader.samples() == {}
    log(tmp_path, 0.5, 0.2, 0.3)
    (seen,) = reader.samples().values()
    assert (seen.value, seen.step, seen.best, seen.at) == (0.3, 2, 0.2, 2.0)
    assert reader.samples()[TRIAL] is seen
    log(tmp_path, 0.1, first=3)
    (newer,) = reader.samples().values()
    assert (newer.value, newer.step, newer.best) == (0.1, 3, 0.1)


def test_the_value_that_was_logged_last_counts_where_steps_go_back_and_that_is_said(tmp_path: Path) -> None:
    log(tmp_path, 0.5, 0.2, 0.1)
    reader = JournalReader(tmp_path, lambda: [job()], float)
    assert [sample.remark for sample in reader.samples().values()] == [""]
    log(tmp_path, 0.9, 0.8)
    (seen,) = reader.samples().values()
    assert (seen.value, seen.step) == (0.8, 1)
    result = result_of(job(Phase.SUCCEEDED), "s.a", seen)
    told = RunResult("default", (result,))
    assert warnings(comparison_rows([told])) == [
        "s.a: the steps of 'loss' went back from 2 to 1: the value that was logged last counts"
    ]
    assert told.to_dict()["trials"][0]["remark"] == seen.remark
    assert "remark" not in RunResult("default", (replace(result, remark=""),)).to_dict()["trials"][0]


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    log(tmp_path, 0.5)
    reader, whole = JournalReader(tmp_path, lambda: [job()], float), Point("loss", 0.25, 1, 1000).encode()
    with (tmp_path / TRIAL / POINTS).open("ab") as file:
        file.write(whole[:10])
        file.flush()
        assert [sample.value for sample in reader.samples().values()] == [0.5]
        file.write(whole[10:])
    assert [sample.value for sample in reader.samples().values()] == [0.25]


def test_a_journal_that_begins_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    log(tmp_path, 0.5, 0.1)
    reader = JournalReader(tmp_path, lambda: [job()], float)
    reader.samples()
    (tmp_path / TRIAL / POINTS).unlink()
    log(tmp_path, 0.4)
    (seen,) = reader.samples().values()
    assert (seen.value, seen.step, seen.best) == (0.4, 0, 0.4)


def test_a_trial_that_is_over_is_read_once_more_and_then_left_alone(tmp_path: Path) -> None:
    log(tmp_path, 0.5)
    jobs = [job()]
    reader = JournalReader(tmp_path, lambda: jobs, float)
    reader.samples()
    log(tmp_path, 0.25, first=1)
    jobs = [job(Phase.SUCCEEDED)]
    assert [sample.value for sample in reader.samples().values()] == [0.25]
    (tmp_path / TRIAL / POINTS).unlink()
    assert [sample.value for sample in reader.samples().values()] == [0.25]


class Mlflow:
    def poll(self) -> Mapping[TrialId, Sample]:
        return {TRIAL: Sample(9.0, 1, 5.0), TrialId("plain"): Sample(1.0, 1, 5.0)}


def test_a_journal_is_believed_before_mlflow_and_scripts_without_one_are_seen_too(tmp_path: Path) -> None:
    log(tmp_path, 0.5, 0.25)
    source = OverJournals(Mlflow(), JournalReader(tmp_path, lambda: [job()], float).samples, lambda: 3.0)
    found = source.poll()
    assert {trial: sample.value for trial, sample in found.items()} == {TRIAL: 0.25, "plain": 1.0}
    assert found[TRIAL].at >= 5.0, "never before what was told before"
    assert source.poll()[TRIAL] is found[TRIAL]


def with_latency(one: LocalJob) -> LocalJob:
    notes = {**one.step.annotations, labels.ANNOTATION_FURTHER_OBJECTIVES: "minimize latency"}
    return replace(one, step=replace(one.step, annotations=notes))


def test_what_counts_beside_the_objective_is_read_with_it_also_where_it_comes_later(tmp_path: Path) -> None:
    reader = JournalReader(tmp_path, lambda: [with_latency(job())], float)
    log(tmp_path, 0.5)
    assert reader.samples()[TRIAL].also == ()
    journal = Journal(tmp_path / TRIAL)
    journal.append([Point("latency", 7.0, 0, 1000), Point("other", 1.0, 0, 1000)])
    journal.close()
    assert reader.samples()[TRIAL].also == (("latency", 7.0),)


def test_what_a_script_with_hooks_logs_past_them_is_added_from_mlflow() -> None:
    journalled = Sample(0.5, 1, 1.0, also=(("latency", 7.0),))
    tracked = replace(journalled, value=0.9, also=(("latency", 9.0), ("memory_mb", 100.0)))

    class Tracker:
        def poll(self) -> Mapping[TrialId, Sample]:
            return {TRIAL: tracked}

    reader = OverJournals(Tracker(), lambda: {TRIAL: journalled}, lambda: 5.0)
    (first,), (again,) = reader.poll().values(), reader.poll().values()
    assert (first.value, dict(first.also)) == (0.5, {"latency": 7.0, "memory_mb": 100.0})
    assert again is first


class Ticking:
    """A clock that goes on with each question for it."""

    def __init__(self, tick_s: float) -> None:
        self._ticks = (tick_s * number for number in count())

    def __call__(self) -> float:
        return next(self._ticks)


def test_a_flood_is_read_in_parts_and_what_is_passed_over_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    jobs = [job(Phase.SUCCEEDED)]
    reader = JournalReader(tmp_path, lambda: jobs, float, said.append, Ticking(0.2))
    (tmp_path / TRIAL).mkdir()
    line = Point("loss", 0.5, 1, 1000).encode()
    last = Point("loss", 0.125, 2, 2000).encode()
    lines = 20 * JOURNAL_PIECE // len(line)
    (tmp_path / TRIAL / POINTS).write_bytes(line * lines + last)
    (first,) = reader.samples().values()
    assert first.value == 0.5
    assert said == []
    reader.read_all(lambda: False)
    (newest,) = reader.samples().values()
    assert (newest.value, newest.step, newest.best) == (0.125, 2, 0.125)
    (told,) = said
    assert 0 < int(told.removeprefix(f"{TRIAL} logged faster than it can be followed: ").split()[0]) < len(line) * lines


def test_a_journal_flood_keeps_no_other_trial_from_being_read(tmp_path: Path) -> None:
    names = [TrialId(f"uid.s.{number}") for number in range(5)]
    for name in names:
        (tmp_path / name).mkdir()
        many = 40_000 if name != names[-1] else 1
        (tmp_path / name / POINTS).write_bytes(Point("loss", 0.5, 1, 1000).encode() * many)
    jobs = [replace(job(), step=replace(job().step, env={contract.ENV_TRIAL_ID: name})) for name in names]
    reader = JournalReader(tmp_path, lambda: jobs, float, clock=Ticking(0.05))
    for _ in range(6):
        seen = reader.samples()
    assert names[-1] in seen


@pytest.mark.parametrize("written", [b"x" * 300_000, b"\x00\xff" * 1000 + b"\n", b'{"key": ' + b"[" * 50_000 + b"\n"])
def test_what_is_no_journal_tells_nothing_and_holds_nothing_up(tmp_path: Path, written: bytes) -> None:
    (tmp_path / TRIAL).mkdir()
    with (tmp_path / TRIAL / POINTS).open("wb") as file:
        file.write(written)
    reader = JournalReader(tmp_path, lambda: [job(Phase.SUCCEEDED)], float)
    reader.read_all(lambda: False)
    assert reader.samples() == {}


def test_a_pipe_in_place_of_a_journal_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / TRIAL).mkdir()
    os.mkfifo(tmp_path / TRIAL / POINTS)
    reader = JournalReader(tmp_path, lambda: [job(Phase.SUCCEEDED)], float)
    reader.read_all(lambda: False)
    assert reader.samples() == {}
