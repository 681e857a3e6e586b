"""A sweep was cut short, and its file was changed before the same command: nothing is dropped without a word."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.local_run import cut_short
from controllers.local_run.changes import trial_that_differs
from controllers.local_run.order import LocalSettings, Order
from controllers.local_run.reviving import take_on_changes
from controllers.local_run.run_folder import RunFolder, find_or_make_run
from controllers.policies.registry import parse_policy
from controllers.worlds.local.jobs import JobLedger, LocalJob, load_ledger, save_ledger
from hera_specon.cli import main
from hera_specon.workflow_file import load_workflow

SWEEP = """
from hera.workflows import Workflow
from hera_specon import Sweep, choice, log_uniform, minimize

with Workflow(generate_name="s-", entrypoint="s") as w:
    Sweep(name="s", image={image!r}, command=["python", {script!r}], space={space}, objective=minimize("loss"), {more})
"""
GRID = {"image": "x:1", "script": "train.py", "space": "dict(k=choice(0, 1))", "more": "search='grid'"}


def order(file: str = "sweep.py", policy: str = "default", **changed: str) -> Order:
    """Write the sweep and return what a command that runs it asks for."""
    Path(file).write_text(SWEEP.format(**{**GRID, **changed}))
    settings = LocalSettings(nodes=1, cpus_per_node=0.5)
    return Order(load_workflow(Path(file)).manifest, Path(file), [parse_policy(policy)], settings)


def cut(asked: Order, *, reports: bool = True) -> RunFolder:
    """Leave a run of ``asked`` that was cut short, after trials have reported."""
    folder = find_or_make_run(asked.settings.state_dir, asked.sweep, asked.identity(), fresh=True)
    folder.keep_order({**asked.identity(), "source": str(asked.source)})
    state = folder.of_policy(0, "default") / "state" / f"{folder.uid(0)}.s.t000"
    state.mkdir(parents=True)
    (state / "points.jsonl").write_text("{}\n" if reports else "")
    return folder


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def run(*options: str) -> Result:
    command = ["run", "sweep.py", "--nodes", "1", "--cpus-per-node", "0.5", "--policy", "default", *options]
    return CliRunner().invoke(main, command)


@pytest.mark.parametrize(
    ("changed", "told", "extends"),
    [
        ({"space": "dict(k=choice(0, 1, 2))"}, ["hyperparameter k: 0, 1 -> 0, 1, 2", "trials: 2 -> 3"], True),
        ({"space": "dict(k=choice(0, 5))"}, ["hyperparameter k: 0, 1 -> 0, 5"], False),
        ({"space": "dict(k=choice(0, 1), j=choice(7))"}, ["hyperparameter j: none -> 7"], False),
        ({"image": "x:2"}, ["templates.s-trial.container.image: x:1 -> x:2"], True),
        ({"script": "other.py"}, ["train.py -> other.py"], False),
        ({"more": "search='grid', retries=7"}, ["retryStrategy.expression"], True),
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.parametrize("options", [(), ("--json", "-")], ids=["", "json"])
def test_the_command_says_what_changed_and_what_can_be_done_and_begins_nothing(
    changed: dict[str, str], told: list[str], options: tuple[str, ...], *, extends: bool
) -> None:
    cut(order())
    order(**changed)
    done = run(*options)
    assert done.exit_code == 2
    assert "run s-1 was cut short, and sweep.py has been changed since" in done.output
    for line in told:
        assert line in done.output
    assert ("--extend " in done.output) is extends
    assert "--continue" in done.output
    assert "--fresh" in done.output
    assert [path.name for path in Path(".specon/runs").iterdir()] == ["s-1"]


def test_a_wide_range_is_told_in_one_line() -> None:
    wide = {"more": "search='random', trials=9, seed=1"}
    cut(order(space="dict(lr=log_uniform(0.1, 1))", **wide))
    asked = order(space="dict(lr=log_uniform(1, 10))", **wide)
    with pytest.raises(
        cut_short.ChangedSweepError, match=r"hyperparameter lr: 9 values from 0\.\S+ to 0\.\S+ -> 9 val"
    ):
        cut_short.check_nothing_is_dropped(asked)


@pytest.mark.parametrize("what", ["no progress", "finished", "the same", "an older one is the same"])
def test_nothing_is_asked_where_nothing_would_be_dropped(what: str) -> None:
    asked = order()
    folder = cut(asked, reports=what != "no progress")
    if what == "finished":
        folder.describe({"finished": True})
    if what == "an older one is the same":
        cut(order(space="dict(k=choice(3, 4))"))
    now = asked if "same" in what else order(space="dict(k=choice(0, 1, 2))")
    assert cut_short.check_nothing_is_dropped(now) == []


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (lambda: order(policy="ahead"), "--policy: default -> ahead"),
        (lambda: order("copy.py", space="dict(k=choice(3))"), "it is of sweep.py"),
    ],
    ids=["other options", "another file"],
)
def test_a_run_that_its_own_command_still_goes_on_with_is_only_told(now: Callable[[], Order], told: str) -> None:
    cut(order())
    (line,) = cut_short.check_nothing_is_dropped(now())
    assert "run s-1 was cut short" in line
    assert told in line


def test_a_run_goes_on_as_it_was_when_it_began() -> None:
    before = order()
    cut(before)
    folder, found = cut_short.begun_run(order(space="dict(k=choice(3, 4))"))
    assert (folder.name, found.workflow, found.identity()) == ("s-1", before.workflow, before.identity())


def test_to_continue_what_was_not_cut_short_is_refused() -> None:
    with pytest.raises(SpeconError, match="leave --continue out"):
        cut_short.begun_run(order())


def test_what_has_not_ended_goes_on_with_the_new_retries_and_what_a_search_found(tmp_path: Path) -> None:
    old, new = (order(more=f"search='grid', retries={retries}").program("u") for retries in (2, 5))
    step = old.trials()[0].step
    searched = {**step.annotations, f"{labels.ANNOTATION_PARAM}lr": "0.1"}
    job = LocalJob(replace(step, annotations=searched), 0.0, 0.1)
    save_ledger(tmp_path / "ledger.json", JobLedger({step.id: job}))
    take_on_changes(tmp_path, new)
    (kept,) = load_ledger(tmp_path / "ledger.json").jobs.values()
    assert kept.step.retry == new.trials()[0].step.retry != step.retry
    assert kept.step.annotations[f"{labels.ANNOTATION_PARAM}lr"] == "0.1"


def flags(words: dict[float, str]) -> dict[str, str]:
    return {
        "space": f"dict(lr=choice({', '.join(map(str, words))}))",
        "more": f"search='grid', flags={{'lr': {words}}}",
    }


@pytest.mark.parametrize(
    ("words", "differs"),
    [
        ({0.001: "--lr=1e-3", 0.1: "--lr=.1"}, None),
        ({0.001: "--lr=1e-3", 0.1: "--lr=.1", 0.2: "--lr=.20"}, None),
        ({0.001: "--rate=1e-3", 0.1: "--lr=.1"}, "s.t000"),
        ({0.001: "--lr=1e-3", 0.2: "--lr=.20"}, "s.t001"),
        ({0.001: "--lr=1e-3"}, "s.t001"),
    ],
)
def test_words_for_more_values_leave_the_trials_as_they_were(words: dict[float, str], differs: str | None) -> None:
    before = order(**flags({0.001: "--lr=1e-3", 0.1: "--lr=.1"}))
    assert trial_that_differs(before, order(**flags(words))) == differs
