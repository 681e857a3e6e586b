import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from controllers.core.errors import SpeconError, SweepInterrupted
from controllers.core.labels import ANNOTATION_DEADLINE, ANNOTATION_POLICY, ANNOTATION_TARGET, LABEL_SWEEP
from controllers.core.model import Snapshot
from controllers.core.policy import Policy
from controllers.core.results import RunResult, TrialResult
from controllers.local_run.order import LocalSettings
from controllers.local_run.run import LocalRun
from controllers.local_run.services import Screen
from controllers.policies.registry import parse_policy, policy_spec
from hera_specon.cli import main
from hera_specon.cli.backend import Backend, Workflow
from hera_specon.errors import WorkflowFileError
from tests.hera_specon.report.example_run import write_example_run


@dataclass
class FakeRuns:
    """Stands in for the composition root: notes what was asked and tells of a run that went well."""

    folder: Path
    workflow: dict[str, Any] = field(default_factory=dict)
    load_error: WorkflowFileError | None = None
    run_error: BaseException | None = None
    succeeded: bool = True
    started: list[tuple[list[str], LocalSettings]] = field(default_factory=list)

    def backend(self) -> Backend:
        return Backend(self.load, parse_policy, self.run)

    def load(self, path: Path) -> Workflow:
        del path
        if self.load_error:
            raise self.load_error
        return self.workflow

    def run(
        self,
        workflow: Mapping[str, Any],
        source: Path,
        policies: Sequence[Policy[Any]],
        settings: LocalSettings,
        screen: Screen,
    ) -> LocalRun:
        del workflow, source
        self.started.append(([policy_spec(policy) for policy in policies], settings))
        if self.run_error:
            raise self.run_error
        results = tuple(self.result(policy.name, 40.0 - 10 * i) for i, policy in enumerate(policies))
        self.folder.mkdir(exist_ok=True)
        screen.locate(self.folder)
        for position, result in enumerate(results, start=1):
            screen.begin(result.policy, 2, position, len(results))
            screen.observe(Snapshot(0.0, (), ()), {}, {})
            screen.end(result)
        return LocalRun(write_example_run(self.folder), results, "http://127.0.0.1:5000")

    def result(self, policy: str, makespan: float) -> RunResult:
        trials = [TrialResult(f"t{i}", 0.0, makespan - i, "node-1", 0, 1, 0.1, self.succeeded) for i in range(2)]
        return RunResult(policy, tuple(trials))


Specon = Callable[..., Result]


@pytest.fixture
def runs(tmp_path: Path) -> FakeRuns:
    return FakeRuns(tmp_path / "state")


@pytest.fixture
def sweep(tmp_path: Path) -> str:
    file = tmp_path / "sweep.py"
    file.write_text("w = None\n")
    return str(file)


@pytest.fixture
def specon(runs: FakeRuns) -> Specon:
    return lambda *arguments: CliRunner().invoke(main, arguments, obj=runs.backend())


def test_a_sweep_runs_under_ahead_where_nobody_chose(specon: Specon, runs: FakeRuns, sweep: str) -> None:
    result = specon("run", sweep)

    assert result.exit_code == 0, result.stderr
    assert runs.started == [(["ahead"], LocalSettings())]


@pytest.mark.parametrize("place", ["workflow", "template"])
def test_the_policy_that_the_author_named_is_the_default(
    specon: Specon, runs: FakeRuns, sweep: str, place: str
) -> None:
    notes = {"metadata": {"annotations": {ANNOTATION_POLICY: "flowcon:interval=7"}}}
    runs.workflow = notes if place == "workflow" else {"spec": {"templates": [{"name": "main"}, notes]}}

    assert specon("run", sweep).exit_code == 0
    assert runs.started[0][0] == ["flowcon:interval=7"]


def test_sweeps_that_disagree_on_the_policy_need_a_choice(specon: Specon, runs: FakeRuns, sweep: str) -> None:
    templates = [{"metadata": {"annotations": {ANNOTATION_POLICY: name}}} for name in ("specon", "flowcon")]
    runs.workflow = {"spec": {"templates": templates}}

    refused = specon("run", sweep)

    assert (refused.exit_code, runs.started) == (2, [])
    assert "flowcon, specon. Choose one with --policy" in refused.stderr
    assert specon("run", sweep, "--policy", "specon").exit_code == 0


def test_every_option_reaches_the_run(specon: Specon, runs: FakeRuns, sweep: str, tmp_path: Path) -> None:
    state = tmp_path / "elsewhere"
    runs.workflow = {"spec": {"arguments": {"parameters": [{"name": "epochs"}, {"name": "note"}]}}}

    result = specon(
        *("run", sweep, "--policy", "default", "--policy", "specon:interval=5+flowcon:interval=5"),
        *("--nodes", "2", "--cpus-per-node", "0.45", "--seed", "7", "-p", "epochs=5", "-p", "note=a=b"),
        *("--state-dir", str(state), "--fresh", "-j", "3"),
    )

    assert result.exit_code == 0, result.stderr
    settings = LocalSettings(2, 0.45, 7, state, fresh=True, jobs=3, parameters={"epochs": "5", "note": "a=b"})
    assert runs.started == [(["default", "specon:interval=5+flowcon:interval=5"], settings)]


@pytest.mark.parametrize("nodes", [[], ["--nodes", "3"]])
def test_nodes_of_different_size_are_given_one_by_one(
    specon: Specon, runs: FakeRuns, sweep: str, nodes: list[str]
) -> None:
    result = specon("run", sweep, *nodes, "--cpus-per-node", "0.8,0.4,0.2")

    assert result.exit_code == 0, result.stderr
    settings = runs.started[0][1]
    assert (settings.nodes, settings.cores) == (3, (0.8, 0.4, 0.2))
    assert settings.machine({}).nodes == {"node-1": 0.8, "node-2": 0.4, "node-3": 0.2}


def test_the_comparison_and_where_the_report_is_end_the_run(specon: Specon, sweep: str, runs: FakeRuns) -> None:
    result = specon("run", sweep, "--policy", "default", "--policy", "specon")

    report = runs.folder / "runs" / "demo-1" / "report.html"
    assert "(-25.0 %)" in result.stdout
    assert "2 of 2" in result.stdout
    assert f"Report: {report}" in result.stdout
    assert "The best models" in result.stdout
    assert report.read_text().startswith("<!doctype html>")


def test_a_second_report_is_written_where_it_was_asked_for(specon: Specon, sweep: str, tmp_path: Path) -> None:
    out = tmp_path / "out.html"

    assert specon("run", sweep, "--report", str(out)).exit_code == 0
    assert out.read_text().startswith("<!doctype html>")


def test_json_on_stdout_is_alone_there(specon: Specon, sweep: str) -> None:
    result = specon("run", sweep, "--policy", "default", "--policy", "specon", "--json", "-")

    figures = json.loads(result.stdout)
    assert [run["policy"] for run in figures["runs"]] == ["default", "specon"]
    assert figures["comparisons"][0]["makespan_ratio"] == 0.75
    assert "Report:" in result.stderr


def test_json_goes_to_a_file(specon: Specon, sweep: str, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"

    assert specon("run", sweep, "--json", str(out)).exit_code == 0
    assert json.loads(out.read_text())["comparisons"] == []


def test_failed_trials_fail_the_command_by_name_after_the_figures(specon: Specon, sweep: str, runs: FakeRuns) -> None:
    runs.succeeded = False

    result = specon("run", sweep, "--policy", "default")

    assert result.exit_code == 1
    assert "t0 failed under default\n  t1 failed under default" in result.stderr
    assert "makespan" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--policy", "speccon"], ["--policy, 'speccon'", "did you mean 'specon'", "specon policies"]),
        (["--policy", "default", "--policy", "specon:alpha=7"], ["alpha", "7"]),
        (["--policy", "specon:alpha"], ["alpha=VALUE"]),
        (["--policy", ""], ["--policy, ''"]),
        (["--nodes", "0"], ["--nodes", "'0'", "from 1 up"]),
        (["--nodes", "two"], ["--nodes", "'two'"]),
        (["--nodes", "1.5"], ["--nodes", "'1.5'"]),
        (["--cpus-per-node", "0"], ["--cpus-per-node", "'0'", "above 0"]),
        (["--cpus-per-node", "0.5,0,1"], ["--cpus-per-node", "'0'", "above 0"]),
        (["--cpus-per-node", "0.5,"], ["--cpus-per-node", "''"]),
        (["--cpus-per-node", "-1"], ["--cpus-per-node", "'-1'"]),
        (["--cpus-per-node", "nan"], ["--cpus-per-node", "'nan'"]),
        (["--cpus-per-node", "inf"], ["--cpus-per-node", "'inf'"]),
        (["--seed", "x"], ["--seed", "'x'"]),
        (["-p", "epochs"], ["'epochs' is not name=value"]),
        (["-p", "=5"], ["'=5' is not name=value"]),
        (["-p", "epochs=1", "-p", "epochs=2"], ["'epochs' is given twice"]),
        (["-p", "epoch=5"], ["epoch=5", "no parameter 'epoch'", "it has epochs"]),
        (["--json", "/no/such/folder/x.json"], ["--json", "/no/such/folder"]),
        (["--report", "/"], ["--report", "is a folder"]),
        (["--polcy", "specon"], ["--polcy", "--policy"]),
    ],
)
def test_bad_input_is_named_and_nothing_starts(
    specon: Specon, runs: FakeRuns, sweep: str, arguments: list[str], told: list[str]
) -> None:
    runs.workflow = {"spec": {"arguments": {"parameters": [{"name": "epochs"}]}}}

    result = specon("run", sweep, *arguments)

    assert (result.exit_code, runs.started, result.stdout) == (2, [], "")
    assert "Traceback" not in result.stderr
    for words in told:
        assert words in result.stderr


def test_a_file_that_is_not_there_is_named(specon: Specon, runs: FakeRuns) -> None:
    result = specon("run", "nowhere.py")

    assert (result.exit_code, runs.started) == (2, [])
    assert "nowhere.py" in result.stderr


def test_a_file_without_a_workflow_is_named_with_the_reason(specon: Specon, runs: FakeRuns, sweep: str) -> None:
    runs.load_error = WorkflowFileError(Path(sweep), "defines no Workflow named w")

    result = specon("run", sweep)

    assert (result.exit_code, runs.started) == (2, [])
    assert result.stderr == f"Error: Cannot run {sweep}: defines no Workflow named w\n"


def test_what_the_run_refuses_is_told_without_a_traceback(specon: Specon, runs: FakeRuns, sweep: str) -> None:
    runs.run_error = SpeconError("trial t007 asks for 3 cores, no node has more than 0.45")

    result = specon("run", sweep)

    assert result.exit_code == 2
    assert result.stderr == "Error: trial t007 asks for 3 cores, no node has more than 0.45\n"


def test_an_interruption_says_how_to_go_on(specon: Specon, runs: FakeRuns, sweep: str) -> None:
    runs.run_error = SweepInterrupted("interrupted: run the same command again to go on")

    result = specon("run", sweep)

    assert result.exit_code == 130
    assert "the same command" in result.stderr


def test_a_fault_of_specon_itself_shows_its_traceback_only_on_demand(
    specon: Specon, runs: FakeRuns, sweep: str
) -> None:
    runs.run_error = RuntimeError("boom")

    polite, debugged = specon("run", sweep), specon("--debug", "run", sweep)

    assert polite.exit_code == 1
    assert "RuntimeError: boom" in polite.stderr
    assert "Traceback" not in polite.stderr
    assert debugged.exception is runs.run_error


def with_goals(*annotations: str) -> dict[str, Any]:
    metadata = {"labels": {LABEL_SWEEP: "s"}, "annotations": dict.fromkeys(annotations, "60")}
    return {"spec": {"templates": [{"name": "s-trial", "container": {"image": "i"}, "metadata": metadata}]}}


def test_goals_that_no_policy_of_the_run_goes_by_are_told_beside_the_policies_that_do(
    specon: Specon, runs: FakeRuns, sweep: str
) -> None:
    runs.workflow = with_goals(ANNOTATION_DEADLINE, ANNOTATION_TARGET)

    result = specon("run", sweep, "--policy", "default", "--policy", "tradl+specon", "--json", "-")

    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == (
        "Warning: the sweep sets deadline=, but none of the policies default, tradl+specon uses it; "
        "policies that use it: deadline, edf"
    )
    assert result.stderr.count("Warning") == 1
    assert json.loads(result.stdout)


def test_a_run_that_compares_a_policy_with_others_that_do_not_go_by_its_goal_warns_of_nothing(
    specon: Specon, runs: FakeRuns, sweep: str
) -> None:
    runs.workflow = with_goals(ANNOTATION_DEADLINE)
    assert "Warning" not in specon("run", sweep, "--policy", "default", "--policy", "deadline").stderr


def test_repeats_run_each_policy_in_turns_and_end_with_ranges(specon: Specon, sweep: str, runs: FakeRuns) -> None:
    result = specon("run", sweep, "--policy", "default", "--policy", "specon", "--repeats", "2", "--json", "-")

    assert result.exit_code == 0, result.stderr
    assert runs.started[0][0] == ["default", "specon"] * 2
    figures = json.loads(result.stdout)
    assert [run["policy"] for run in figures["runs"]] == [*("default", "specon", "default #2", "specon #2")]
    (told,) = figures["repeats"]
    assert (told["policy"], told["runs"], told["idle"]) == ("specon", 2, True)
    assert "took no action" in " ".join(result.stderr.split())


def test_a_policy_is_added_to_the_run_that_is_there(specon: Specon, sweep: str, runs: FakeRuns) -> None:
    assert specon("run", sweep, "--add-policy", "flowcon").exit_code == 0
    policies, settings = runs.started[0]
    assert (policies, settings.adds_policies) == (["flowcon"], True)
    refused = specon("run", sweep, "--add-policy", "flowcon", "--policy", "default")
    assert (refused.exit_code, len(runs.started)) == (2, 1)
    assert "leave --policy and --fresh out" in refused.stderr


def test_a_run_is_extended_under_its_own_policies(specon: Specon, sweep: str, runs: FakeRuns) -> None:
    assert specon("run", sweep, "--extend").exit_code == 0
    assert runs.started[0][1].extends
    refused = specon("run", sweep, "--extend", "--policy", "default")
    assert (refused.exit_code, len(runs.started)) == (2, 1)
    assert "leave --policy, --add-policy, --repeats and --fresh out" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(("option", "served"), [(None, False), ("--no-page", False), ("--page", True)])
def test_a_page_is_served_only_where_a_person_reads_along_or_asks_for_it(
    specon: Specon, sweep: str, option: str | None, *, served: bool
) -> None:
    result = specon("run", sweep, *filter(None, [option]))

    assert result.exit_code == 0, result.output
    found = re.search(r"Page: http://127\.0\.0\.1:\d+/[\w-]{43}/sweeps/state ", result.output)
    assert bool(found) == served
    assert ("Page: " in result.output) == served
