import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controllers.core import kueue
from controllers.core.forecast import EndRange
from controllers.core.labels import ANNOTATION_MOVE_TO, ANNOTATION_UNSAVED, LABEL_SWEEP
from controllers.core.model import Phase
from controllers.record.forecasts import ForecastFile, ToldForecast
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile
from controllers.worlds.local.jobs import JobLedger, LocalJob, save_ledger
from controllers.worlds.local.processes import ProcessMark
from controllers.worlds.local.workflow import PodStep
from controllers.worlds.local.working_folders import Project, working_folder
from hera_specon.records.run_folder import own_folder, run_states
from mlflow_hooks.contract import ENV_TRIAL_ID
from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.cluster_objects import PODS, WORKFLOWS, listed, pod, workflow
from tests.hera_specon.cli.conftest import Specon
from tests.hera_specon.report.example_run import write_example_run

MLFLOW = "/api/2.0/mlflow"


@pytest.fixture(autouse=True)
def no_mlflow_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def hold(cluster: Cluster, *workflows: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> None:
    cluster.objects[WORKFLOWS] = listed(*workflows)
    cluster.objects[PODS] = listed(*pods)
    for one in workflows:
        cluster.objects[f"{WORKFLOWS}/{one['metadata']['name']}"] = one


def track(cluster: Cluster, *runs: dict[str, Any]) -> None:
    """Let the server answer as MLflow too."""
    experiment = {"experiment_id": "1", "name": "vae", "artifact_location": "x", "lifecycle_stage": "active"}
    cluster.objects[f"{MLFLOW}/experiments/get-by-name"] = {"experiment": experiment}
    cluster.posts[f"{MLFLOW}/runs/search"] = {"runs": list(runs)}
    cluster.posts[f"{MLFLOW}/experiments/search"] = {"experiments": [experiment]}


def run(trial: str, loss: float, step: int, **tags: str) -> dict[str, Any]:
    metrics = [("loss", loss, step), ("specon.steps_total", 40.0, 0)]
    told = {"specon.trial_id": f"uid-vae-x1.vae.{trial}", **{f"specon.{name}": value for name, value in tags.items()}}
    return {
        "info": {"run_id": trial, "experiment_id": "1", "status": "RUNNING"},
        "data": {
            "metrics": [{"key": k, "value": v, "timestamp": "1000", "step": str(s)} for k, v, s in metrics],
            "tags": [{"key": key, "value": value} for key, value in told.items()],
        },
    }


def told(specon: Specon, cluster: Cluster, *arguments: str) -> dict[str, Any]:
    result = specon("status", *arguments, "--json", "--mlflow-tracking-uri", cluster.url)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_each_trial_is_told_with_what_kubernetes_and_mlflow_know(specon_there: Specon, cluster: Cluster) -> None:
    moving = pod(1, attempt=1, node="n2", annotations={ANNOTATION_MOVE_TO: "n3"})
    hold(cluster, workflow(), pods=(pod(0), moving))
    track(cluster, run("t000", 0.25, 12, category="watching", growth="0.031", reason="fell behind"))

    state = told(specon_there, cluster)

    first, second = state["trials"]
    assert first == {
        "trial": "vae.t000",
        "phase": "running",
        "node": "n1",
        "workers": 1,
        "cpu": 0.05,
        "base_cpu": 0.1,
        "attempt": 1,
        "moves": 0,
        "category": "watching",
        "growth": 0.031,
        "step": 12,
        "steps_total": 40,
        "metric": 0.25,
        "reason": "fell behind",
        "outlook": "",
        "pids": [],
        "folder": None,
        "left_s": None,
        "left_low_s": None,
        "left_high_s": None,
    }
    assert (second["phase"], second["node"], second["attempt"]) == ("moving", "n2 → n3", 2)
    assert second["category"] is None
    assert state["policy"] == "specon:interval=7"
    assert state["steered"] == "a controller steers it"
    counts = {
        "total": 3,
        "running": 1,
        "moving": 1,
        "suspended": 0,
        "succeeded": 0,
        "stopped": 0,
        "failed": 0,
        "ended": 0,
    }
    assert state["counts"] == counts
    assert state["missing"] == []


def test_the_table_shows_the_same(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(), pods=(pod(0),))
    track(cluster, run("t000", 0.25, 12, category="watching", growth="0.031", reason="fell behind"))

    result = specon_there("status", "--mlflow-tracking-uri", cluster.url)

    assert "vae-x1  in namespace lab: Running" in result.stdout
    assert "0 of 3 trials ended, 1 running" in result.stdout
    row = next(line for line in result.stdout.splitlines() if line.startswith("vae.t000"))
    assert row.split() == [
        *("vae.t000", "running", "n1", "0.05/0.1", "1", "0", "watching", "0.031", "12/40", "0.25", "fell", "behind")
    ]


def test_what_is_foreseen_stands_beside_its_trial_in_table_and_json(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(), pods=(pod(0),))
    track(cluster, run("t000", 0.25, 12, outlook="will miss its deadline by 12 min"))

    (trial,) = told(specon_there, cluster)["trials"]
    table = specon_there("status", "--mlflow-tracking-uri", cluster.url).stdout

    assert (trial["category"], trial["outlook"]) == (None, "will miss its deadline by 12 min")
    assert "outlook" in table
    assert "will miss its deadline by 12 min" in table


def ends(earliest: str, likely: str, latest: str) -> dict[str, str]:
    return {"end_earliest": earliest, "end": likely, "end_latest": latest}


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_when_a_trial_will_end_is_told_as_its_run_says(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(), pods=(pod(0),))
    track(cluster, run("t000", 0.25, 12, **ends(in_seconds(240), in_seconds(300), in_seconds(400))))

    state = told(specon_there, cluster)
    table = specon_there("status", "--mlflow-tracking-uri", cluster.url).stdout

    (trial,) = state["trials"]
    assert trial["left_s"] == pytest.approx(300, abs=20)
    assert trial["left_low_s"] < trial["left_s"] < trial["left_high_s"] < 410
    assert "5 min (" in table
    assert state["left_s"] is None  # the sweep's own run says nothing


@pytest.mark.parametrize(
    "odd",
    [
        ends("soon", "later", "never"),
        ends(in_seconds(300), in_seconds(200), in_seconds(100)),
        {"end": in_seconds(100)},
        ends("0000-00-00T00:00:00Z", in_seconds(1), in_seconds(2)),
    ],
)
def test_a_forecast_that_makes_no_sense_is_not_shown(
    specon_there: Specon, cluster: Cluster, odd: dict[str, str]
) -> None:
    hold(cluster, workflow(), pods=(pod(0),))
    track(cluster, run("t000", 0.25, 12, **odd))

    assert told(specon_there, cluster)["trials"][0]["left_s"] is None


def test_what_a_controller_would_do_is_shown_where_it_only_recommends(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(), pods=(pod(0),))
    track(cluster, run("t000", 0.25, 12, **{"recommended.category": "converged", "recommended.reason": "would move"}))

    (trial,) = told(specon_there, cluster)["trials"]

    assert (trial["category"], trial["reason"]) == ("converged", "would move")


def test_a_trial_that_has_ended_is_told_with_where_it_ran_last(specon_there: Specon, cluster: Cluster) -> None:
    over = pod(0, node="n2", phase="Succeeded", state={"terminated": {"exitCode": 0}})
    hold(cluster, workflow(), pods=(over,))
    track(cluster)

    (trial,) = told(specon_there, cluster)["trials"]

    assert (trial["phase"], trial["node"]) == ("succeeded", "n2")


def test_where_argo_offloads_its_record_pods_are_shown_and_what_is_missing_said(
    specon_there: Specon, cluster: Cluster
) -> None:
    over = pod(1, phase="Succeeded", state={"terminated": {"exitCode": 0}})
    hold(cluster, workflow(nodes=None, offloadNodeStatusVersion="fnv:1234567"), pods=(pod(0), over))
    track(cluster)

    state = told(specon_there, cluster)

    phases = {one["trial"]: one["phase"] for one in state["trials"]}
    assert phases == {"vae.t000": "running", "vae.t001": "succeeded"}
    assert "are in a database (nodeStatusOffLoad)" in " ".join(state["missing"])
    assert "trials without pods are not shown" in " ".join(state["missing"])


def test_without_mlflow_the_rest_is_shown_and_what_is_missing_said(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(mlflow="http://127.0.0.1:9"), pods=(pod(0),))

    result = specon_there("status")

    assert result.exit_code == 0
    assert "vae.t000" in result.stdout
    assert "Category, growth, step, metric and reason are missing: http://127.0.0.1:9" in result.stdout
    assert "--mlflow-tracking-uri" in result.stdout


def test_a_file_that_a_manifest_names_as_mlflow_is_not_opened(
    specon_there: Specon, cluster: Cluster, tmp_path: Path
) -> None:
    hold(cluster, workflow(mlflow=f"sqlite:///{tmp_path}/mine.db"), pods=(pod(0),))

    assert "is not the address of an MLflow server" in specon_there("status").stdout
    assert not (tmp_path / "mine.db").exists()


def test_a_gated_trial_and_a_missing_controller_are_said(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(annotations={}), pods=(pod(0, gated=True),))
    track(cluster)

    state = told(specon_there, cluster)

    assert state["steered"].startswith("no controller has adopted it")
    assert state["trials"][0]["phase"] == "pending (gated)"


def test_a_mark_copied_by_a_resubmit_is_not_a_controller(specon_there: Specon, cluster: Cluster) -> None:
    copied = workflow("vae-x2", annotations=workflow("vae-x1")["metadata"]["annotations"])
    hold(cluster, copied)
    track(cluster)

    assert told(specon_there, cluster)["steered"].startswith("no controller")


def test_terminals_are_not_steered_by_what_a_run_says(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(), pods=(pod(0),))
    track(cluster, run("t000", 0.25, 12, reason="\x1b[2J[bold]gone[/]"))

    shown = specon_there("status", "--mlflow-tracking-uri", cluster.url).stdout

    assert "\x1b" not in shown
    assert "[bold]gone[/]" in shown


@pytest.mark.parametrize(("wanted", "found"), [(None, "new"), ("old", "old"), ("vae", "new"), ("uid-old.vae", "old")])
def test_a_sweep_is_found_by_workflow_name_id_or_as_the_newest(
    specon_there: Specon, cluster: Cluster, wanted: str | None, found: str
) -> None:
    old, new = workflow("old"), workflow("new")
    new["metadata"]["creationTimestamp"] = "2024-01-02T00:00:00Z"
    hold(cluster, old, new)
    track(cluster)

    assert told(specon_there, cluster, *([wanted] if wanted else []))["name"] == found


def test_an_unknown_sweep_is_named_with_those_there_are(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow())

    result = specon_there("status", "other")

    assert result.exit_code == 2
    assert "'other'" in result.stderr
    assert "vae-x1" in result.stderr


def test_watching_ends_when_the_sweep_is_over(specon_there: Specon, cluster: Cluster) -> None:
    over = workflow(phase="Succeeded", finishedAt="2024-01-01T00:10:00Z")
    hold(cluster, over, pods=(pod(0, phase="Succeeded", state={"terminated": {"exitCode": 0}}),))
    track(cluster)

    result = specon_there("status", "vae-x1", "--watch", "--mlflow-tracking-uri", cluster.url)

    assert result.exit_code == 0, result.stderr
    assert "1/3 trials ended" in result.stdout


def test_a_run_on_this_machine_is_shown_by_its_name(specon_there: Specon, cluster: Cluster, tmp_path: Path) -> None:
    write_example_run(tmp_path)

    result = specon_there("status", "demo-1", "--state-dir", str(tmp_path), "--json")

    before, after = json.loads(result.stdout)
    assert cluster.asked == []
    assert (before["policy"], after["policy"]) == ("default", "specon+flowcon")
    assert before["counts"]["succeeded"] == 12
    assert sum(trial["moves"] for trial in after["trials"]) > 0
    assert after["trials"][0]["metric"] > 0


def test_the_run_on_this_machine_that_began_last_is_shown_where_none_is_named(
    specon_there: Specon, cluster: Cluster, tmp_path: Path
) -> None:
    write_example_run(tmp_path)

    states = json.loads(specon_there("status", "--state-dir", str(tmp_path), "--json").stdout)

    assert cluster.asked == []
    assert [state["policy"] for state in states] == ["default", "specon+flowcon"]
    assert all(len(state["best"]) == 1 for state in states)


def test_a_namespace_asks_for_the_cluster_though_there_are_runs_on_this_machine(
    specon_there: Specon, cluster: Cluster, tmp_path: Path
) -> None:
    write_example_run(tmp_path)
    hold(cluster, workflow())

    result = specon_there("status", "-n", "lab", "--state-dir", str(tmp_path), "--mlflow-tracking-uri", cluster.url)

    assert "vae-x1" in result.stdout


def test_steps_in_all_are_told_of_a_run_on_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "00-ahead"
    folder.mkdir(parents=True)
    (folder.parent / "run.json").write_text('{"direction": "maximize"}')
    events = [TimelineEvent(0.0, EventKind.PHASE, "s.a", phase="running", node="n1", attempt=1, cpu=0.5)]
    events += [TimelineEvent(1.0, EventKind.REPORT, "s.a", value=0.9, step=39, steps_total=200)]
    events += [TimelineEvent(2.0, EventKind.REPORT, "s.a", value=0.8, step=79)]
    TimelineFile(folder / "timeline.jsonl").append(events)

    (state,) = run_states(folder.parent)

    (trial,) = state.snapshot.trials
    assert trial.progress is not None
    assert (trial.progress.step, trial.progress.steps_total) == (79, 200)
    assert (trial.progress.best, trial.progress.latest) == (0.9, 0.8)


def test_a_trial_that_waits_for_kueue_and_shares_that_never_change_are_told(
    specon_there: Specon, cluster: Cluster
) -> None:
    waits, plain = pod(0, gated=True), pod(1)
    for one in (waits, plain):
        one["metadata"]["labels"][kueue.LABEL_QUEUE] = "team"
    waits["spec"]["schedulingGates"].append({"name": "kueue.x-k8s.io/admission"})
    waits["metadata"]["labels"][kueue.LABEL_GROUP] = "one"
    waits["metadata"]["annotations"][kueue.ANNOTATION_GROUP_SIZE] = "1"
    hold(cluster, workflow(), pods=(waits, plain))
    track(cluster)

    state = told(specon_there, cluster)

    reasons = {trial["trial"]: trial["reason"] for trial in state["trials"]}
    assert reasons["vae.t000"] == "waits for Kueue to admit it from queue team"
    (warning,) = state["warnings"]
    assert warning.startswith("1 trials keep their shares: Kueue, which holds the pod in queue team")


def test_a_state_of_the_controller_that_is_not_kept_is_told(specon_there: Specon, cluster: Cluster) -> None:
    hold(
        cluster,
        workflow(annotations={f"{ANNOTATION_UNSAVED}1234": "the controller's state has too much"}),
        pods=(pod(0),),
    )
    track(cluster)
    assert "the controller's state has too much" in told(specon_there, cluster)["warnings"]


def test_the_processes_and_own_folders_of_trials_on_this_machine_are_told(specon_there: Specon, tmp_path: Path) -> None:
    part = tmp_path / "runs" / "s-1" / "00-ahead"
    part.mkdir(parents=True)
    (part.parent / "run.json").write_text("{}")
    TimelineFile(part / "timeline.jsonl").append(
        [TimelineEvent(0.0, EventKind.PHASE, f"s.{name}", phase="running", node="n", attempt=1) for name in "ab"]
    )
    gone = replace(ProcessMark.of(os.getpid()), started=1)
    jobs = {}
    for name, mark in (("a", ProcessMark.of(os.getpid())), ("b", gone)):
        step = PodStep(name, "t", (), env={ENV_TRIAL_ID: f"uid.s.{name}"}, labels={LABEL_SWEEP: "s"})
        jobs[name] = LocalJob(step, 0.0, 0.1, phase=Phase.RUNNING, processes=(mark,))
    save_ledger(part / "ledger.json", JobLedger(jobs))
    (tmp_path / "project").mkdir()
    own = working_folder(Project(tmp_path / "project", tmp_path / "runs"), part / "work" / "uid.s.a")

    command = ("status", "s-1", "--state-dir", str(tmp_path))
    (first, second) = json.loads(specon_there(*command, "--json").stdout)["trials"]

    assert (first["pids"], first["folder"]) == ([os.getpid()], str(own))
    assert (second["pids"], second["folder"]) == ([], None)
    assert (own_folder(part, "s.a"), own_folder(part, "s.b")) == (own, None)
    table = specon_there(*command).stdout
    assert "pid" in table
    assert str(os.getpid()) in table


def test_the_end_of_a_run_on_this_machine_is_told_as_it_foresaw_it_last(specon_there: Specon, tmp_path: Path) -> None:
    folder = write_example_run(tmp_path)
    (folder / "01-specon-flowcon" / "result.json").unlink()
    about_ended = {"trial-0": EndRange(500.0, 600.0, 700.0), "trial-1": EndRange(1.0, 2.0, 3.0)}
    told = [ToldForecast(1.0, EndRange(1e4, 2e4, 3e4), about_ended), ToldForecast(2.0, EndRange(1e4, 1e5, 1e6))]
    ForecastFile(folder / "01-specon-flowcon" / "forecasts.jsonl").append(told)

    over, running = json.loads(specon_there("status", "demo-1", "--state-dir", str(tmp_path), "--json").stdout)

    assert (over["left_s"], over["left_high_s"]) == (0.0, 0.0)
    elapsed = running["elapsed_s"]
    assert running["left_s"] == pytest.approx(1e5 - elapsed, abs=1)
    assert running["left_high_s"] == pytest.approx(1e6 - elapsed, abs=1)
    assert {trial["left_s"] for trial in running["trials"]} == {None}  # all of them have ended


def test_a_cluster_that_is_away_is_told(specon_there: Specon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    result = specon_there("status")

    assert result.exit_code == 2
    assert "no access to Kubernetes" in result.stderr
