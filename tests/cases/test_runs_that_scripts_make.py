"""A script uses MLflow as in its author's shell; the run that counts is found, and has all hyperparameters."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import Direction, Sample, TrialId
from controllers.core.progress import merge
from controllers.local_run.script_runs import ScriptRuns
from controllers.local_run.trial_runs import TrialRuns
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.run_context import PARENT, run_context
from controllers.tracking.script_runs import Whereabouts, ended_badly, settle
from controllers.tracking.sweep_runs import SweepRun
from controllers.tracking.trial_runs import add_params
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract

TRIAL = TrialId("uid.s.a")
LOSS = {TRIAL: "loss"}


class Book:
    """A sweep in MLflow, and the runs that a script makes under its context."""

    def __init__(self, client: MlflowClient, name: str) -> None:
        self.client = client
        self.name = name
        self.home = str(client.create_experiment(name))
        self.sweep = SweepRun("uid.s", self.home, str(client.create_run(self.home).info.run_id))
        self.at = 1000

    def made(
        self, attempt: str = "one", loss: float | None = None, where: str = "", under: str = "", **other: float
    ) -> str:
        """Make a run as MLflow's library does, a second after the one before; log ``loss`` and others."""
        self.at += 1000
        tags = json.loads(run_context("uid.s", self.sweep.run_id, TRIAL, attempt, {"lr": 0.5, "width": 1}, ""))
        tags |= {"mlflow.parentRunId": under} if under else {}
        tags = tags if attempt else {key: value for key, value in tags.items() if key != contract.TAG_ATTEMPT}
        run = str(self.client.create_run(where or self.home, start_time=self.at, tags=tags).info.run_id)
        logged = {**({} if loss is None else {"loss": loss}), **other}
        self.client.log_batch(run, metrics=[Metric(key, value, self.at, 1) for key, value in logged.items()])
        return run

    def counts(self) -> str | None:
        """Return the run that counts."""
        where = Whereabouts(self.client, lambda: Scope([self.home], "uid."))
        source = MlflowSource(self.client, lambda: where.scope(lacking=False), lambda: LOSS, float)
        source.poll()
        return source.run_ids.get(TRIAL)

    def sample(self) -> Sample:
        """Return the newest sample of the trial."""
        source = MlflowSource(self.client, lambda: Scope([self.home], "uid."), lambda: LOSS, float)
        return source.poll(whole=True)[TRIAL]

    def logged(self, attempt: str, *steps: int) -> str:
        """Make a run as a script does, and log those steps to it."""
        run = self.made(attempt)
        self.log(run, *steps)
        return run

    def log(self, run: str, *steps: int) -> None:
        """Log those steps to a run, a second after what was logged before."""
        self.at += 1000
        self.client.log_batch(run, metrics=[Metric("loss", 1 / (1 + at), self.at + at, at) for at in steps])

    def named(self, run: str) -> tuple[str, str, str]:
        """Return the name of a run, its status, and the run that it is nested under."""
        info = self.client.get_run(run).info
        return str(info.run_name), str(info.status), self.tags(run)[PARENT]

    def tags(self, run: str) -> dict[str, str]:
        return dict(self.client.get_run(run).data.tags)

    def settle(self, *, succeeded: bool = True) -> None:
        """Do what is done at the end of a sweep."""
        settle(self.client, self.sweep, [self.home], {TRIAL: succeeded}, LOSS)
        add_params(self.client, self.sweep, [self.home], {TRIAL: {}})


@pytest.fixture
def book(client: MlflowClient, request: pytest.FixtureRequest) -> Iterator[Book]:
    made = Book(client, f"{request.node.name} {time.time()}")
    yield made
    client.delete_experiment(made.home)


def test_of_several_runs_of_a_script_the_newest_with_the_objective_counts(book: Book) -> None:
    book.made(loss=0.1)
    second = book.made(loss=0.2)
    book.made(accuracy=1.0)
    book.made()
    assert book.counts() == second


def test_a_nested_run_counts_only_where_none_around_it_has_the_objective(book: Book) -> None:
    outer = book.made(accuracy=1.0)
    fold = book.made(loss=0.3, under=outer)
    assert book.counts() == fold
    around = book.made(loss=0.2)
    book.made(loss=0.9, under=around)
    assert book.counts() == around


def test_the_run_of_our_hooks_counts_before_those_of_the_script_beside_them(book: Book) -> None:
    own = book.made(loss=0.1)
    assert book.counts() == own
    hooked = book.made(attempt="", loss=0.2)
    book.made(loss=0.3)
    assert book.counts() == hooked


def test_a_newer_attempt_counts_even_before_it_has_logged(book: Book) -> None:
    book.made("one", loss=0.1)
    again = book.made("two")
    assert book.counts() == again


def test_what_was_known_before_a_trial_began_again_does_not_count() -> None:
    before = merge(None, Sample(0.1, 12, 10.0, training="one"), Direction.MINIMIZE)
    after = merge(before, Sample(0.9, 0, 20.0, training="two"), Direction.MINIMIZE)
    assert after is not None
    assert (after.first, after.best, after.step) == (0.9, 0.9, 0)
    assert merge(before, Sample(float("nan"), 0, 20.0, training="two"), Direction.MINIMIZE) is None


def test_at_the_end_one_run_is_the_trials_and_the_others_are_nested_under_it(book: Book) -> None:
    first, last = book.made(loss=0.1), book.made(loss=0.2)
    inner = book.made(loss=0.3, under=first)
    book.client.log_param(last, "width", "1.0")
    book.settle()
    assert book.client.get_run(last).data.params == {"lr": "0.5", "width": "1.0"}
    assert book.tags(last)["mlflow.parentRunId"] == book.sweep.run_id
    assert book.tags(first)["mlflow.parentRunId"] == last
    assert book.tags(inner)["mlflow.parentRunId"] == first
    for beside in (first, inner):
        assert contract.TAG_TRIAL_ID not in book.tags(beside)
        assert book.tags(beside)[contract.TAG_PART_OF] == TRIAL
        assert book.client.get_run(beside).info.status == "FINISHED"
    assert book.counts() == last


@pytest.mark.parametrize(
    ("statuses", "badly"),
    [(("FAILED",), True), (("RUNNING",), True), (("FINISHED",), False), (("FAILED", "FINISHED"), False), ((), False)],
)
def test_mlflow_tells_that_an_attempt_behind_a_pipe_has_failed(
    book: Book, statuses: tuple[str, ...], *, badly: bool
) -> None:
    for status in statuses:
        run = book.made()
        if status != "RUNNING":
            book.client.set_terminated(run, status)
        inner = book.made(under=run)
        book.client.set_terminated(inner, "FAILED")
    book.made("another")
    assert ended_badly(book.client, [book.home], TRIAL, "one") is badly


def test_runs_in_an_experiment_that_the_script_named_are_found(book: Book) -> None:
    other = str(book.client.create_experiment(f"{book.name} of the script"))
    run = book.made(loss=0.4, where=other)
    where = Whereabouts(book.client, lambda: Scope([book.home], "uid."), clock=iter(range(0, 10_000, 10)).__next__)
    assert list(where.scope(lacking=False).experiment_ids) == [book.home]
    scope = where.scope(lacking=True)
    assert list(scope.experiment_ids) == [book.home, other]
    assert where.elsewhere == {other: f"{book.name} of the script"}
    source = MlflowSource(book.client, lambda: scope, lambda: LOSS, float)
    assert [sample.value for sample in source.poll().values()] == [0.4]
    assert source.run_ids == {TRIAL: run}
    book.client.delete_experiment(other)


def environments(book: Book, root: Path) -> TrialRuns:
    known = ScriptRuns(book.client, {"uid.s": book.sweep}, lambda: [book.home])
    return TrialRuns(lambda _: known, root, {"uid.s": book.name}, '{"team": "x"}')


def step() -> PodStep:
    env = {contract.ENV_TRIAL_ID: TRIAL, contract.ENV_SWEEP_ID: "uid.s", contract.ENV_OBJECTIVE: "loss"}
    return PodStep("a", "t", ("python",), env={**env, contract.ENV_PARAMS: '{"k": 1}'})


def test_an_attempt_is_told_the_marks_of_its_runs_and_no_run(book: Book, tmp_path: Path) -> None:
    told = environments(book, tmp_path).environment(step(), "one", left=False)
    assert contract.ENV_RUN not in told
    assert told["MLFLOW_EXPERIMENT_NAME"] == book.name
    marks = json.loads(told["MLFLOW_RUN_CONTEXT"])
    assert (marks["team"], marks[contract.TAG_TRIAL_ID], marks[contract.TAG_ATTEMPT]) == ("x", TRIAL, "one")
    assert json.loads(marks[contract.TAG_PARAMS]) == {"k": 1}
    assert marks[PARENT] == book.sweep.run_id


def test_an_attempt_that_begins_before_mlflow_answers_waits_for_nothing_and_its_run_is_nested_at_the_end(
    book: Book, tmp_path: Path
) -> None:
    asked: list[float] = []
    early = TrialRuns(asked.append, tmp_path, {"uid.s": book.name})
    marks = json.loads(early.environment(step(), "one", left=False)["MLFLOW_RUN_CONTEXT"])
    assert (asked, PARENT in marks) == ([0.0], False)
    run = str(book.client.create_run(book.home, tags=marks).info.run_id)
    book.client.log_metric(run, "loss", 0.5)
    book.settle()
    assert book.tags(run)[PARENT] == book.sweep.run_id


def test_where_a_script_begins_again_its_earlier_runs_are_none_of_the_trials(book: Book, tmp_path: Path) -> None:
    runs = environments(book, tmp_path)
    runs.environment(step(), "one", left=False)
    old = book.logged("one", 0, 1, 2)
    runs.environment(step(), "two", left=False)
    assert book.counts() == old
    new = book.logged("two", 0, 1)
    assert book.counts() == new
    assert (book.sample().training, book.sample().begun_again) == ("two", 1)
    book.settle()
    assert book.named(old) == ("a (began again)", "KILLED", new)
    assert book.named(new) == ("a", "FINISHED", book.sweep.run_id)


def test_a_script_that_goes_on_in_a_new_run_has_one_training_and_none_is_said_to_have_begun_again(book: Book) -> None:
    first, second, third = book.logged("one", 0, 1, 2), book.logged("two", 3, 4), book.logged("three", 5)
    assert book.counts() == third
    assert (book.sample().training, book.sample().begun_again) == ("one", 0)
    book.settle()
    assert [book.named(run)[:2] for run in (first, second, third)] == [
        ("a", "KILLED"),
        ("a", "KILLED"),
        ("a", "FINISHED"),
    ]


def test_a_script_that_goes_on_in_its_first_run_has_that_alone(book: Book, tmp_path: Path) -> None:
    runs = environments(book, tmp_path)
    runs.environment(step(), "one", left=False)
    own = book.logged("one", 0, 1, 2)
    runs.environment(step(), "two", left=False)
    book.log(own, 3, 4)
    beside = book.made("two", accuracy=1.0)
    book.log(own, 5)
    assert book.counts() == own
    assert (book.sample().step, book.sample().training, book.sample().begun_again) == (5, "one", 0)
    book.settle()
    assert book.named(own) == ("a", "FINISHED", book.sweep.run_id)
    assert book.named(beside) == ("a", "FINISHED", own)


def test_a_script_may_go_on_and_begin_again_by_turns(book: Book) -> None:
    names = ("one", "two", "three", "four", "silent", "five")
    steps = ((0, 1, 2), (2, 3), (0, 1), (1, 2, 3), (), (4,))
    runs = {name: book.logged(name, *of) for name, of in zip(names, steps, strict=True)}
    assert (book.sample().training, book.sample().begun_again) == ("three", 1)
    book.settle()
    again = {name for name, run in runs.items() if book.named(run)[0].endswith("(began again)")}
    assert again == {"one", "two"}
    assert book.counts() == runs["five"]


def test_the_steps_of_a_script_that_mlflow_does_not_tell_are_said_to_have_begun_nothing_again(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        message = "no such endpoint"
        raise MlflowException(message)

    book.logged("one", 0, 1)
    book.logged("two", 0, 1)
    with monkeypatch.context() as without:
        without.setattr("controllers.tracking.script_trainings.points_of", refuse)
        assert book.sample().begun_again == 0
    assert book.sample().begun_again == 1


def test_a_program_that_saved_and_left_goes_on_with_its_run(book: Book, tmp_path: Path) -> None:
    runs = environments(book, tmp_path)
    runs.environment(step(), "one", left=False)
    own = book.made("one", loss=0.1)
    assert runs.environment(step(), "two", left=True)[contract.ENV_RUN] == own
    assert book.counts() == own


def test_the_runs_of_a_script_with_hooks_stay_as_they_are(book: Book, tmp_path: Path) -> None:
    (tmp_path / TRIAL).mkdir()
    (tmp_path / TRIAL / "owner").write_text("one")
    book.made(attempt="", loss=0.2)
    own = book.made("one", accuracy=0.1)
    told = environments(book, tmp_path).environment(step(), "two", left=False)
    assert contract.ENV_RUN not in told
    assert book.tags(own)[contract.TAG_TRIAL_ID] == TRIAL
