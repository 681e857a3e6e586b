"""``specon pause``, ``stop`` and ``resume`` while a sweep runs: by a file here, by an annotation in a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from controllers.core.labels import (
    ANNOTATION_ADOPTED,
    ANNOTATION_ASKED,
    ANNOTATION_FURTHER_OBJECTIVES,
    ANNOTATION_SET_POLICY,
)
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile
from tests.hera_specon.cli.api_server import Cluster
from tests.hera_specon.cli.cluster_objects import PODS, WORKFLOWS, listed, pod, workflow
from tests.hera_specon.cli.conftest import Specon


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Folder of a run on this machine that has not ended, with two trials that run and one that has succeeded."""
    folder = tmp_path / "runs" / "demo-1"
    part = folder / "00-ahead"
    part.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"name": "demo-1", "direction": "minimize", "policies": ["ahead"]}))
    events = [TimelineEvent(0.0, EventKind.PHASE, f"demo.t{n:03}", phase="running", node="n1") for n in range(3)]
    events.append(TimelineEvent(9.0, EventKind.PHASE, "demo.t002", phase="succeeded", node="n1"))
    TimelineFile(part / "timeline.jsonl").append(events)
    return part


def hold(cluster: Cluster, held: dict[str, Any]) -> None:
    """Let the API server hold a workflow with three trials that run."""
    held["status"]["nodes"] = {
        f"step{n}": {
            "name": f"vae-x1[0].vae({n})",
            "type": "Retry",
            "phase": "Running",
            "templateName": "vae-trial",
            "inputs": {"parameters": [{"name": "trial", "value": f"t{n:03}"}, {"name": "params", "value": "{}"}]},
        }
        for n in range(3)
    }
    cluster.objects[WORKFLOWS] = listed(held)
    cluster.objects[f"{WORKFLOWS}/{held['metadata']['name']}"] = held


def asked(part: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((part / "asked.json").read_text())
    return found


def test_trials_of_a_run_on_this_machine_are_asked_by_their_short_names(
    specon_there: Specon, tmp_path: Path, part: Path
) -> None:
    here = ("--state-dir", str(tmp_path))
    assert specon_there("pause", "demo-1", "t000", *here).exit_code == 0
    assert specon_there("stop", "demo-1", "demo.t001", *here).exit_code == 0
    assert asked(part) == {"demo.t000": "pause", "demo.t001": "stop"}

    resumed = specon_there("resume", "demo-1", "--trial", "t000", *here)
    assert resumed.exit_code == 0, resumed.stderr
    assert "demo.t000: goes on" in resumed.stdout
    assert asked(part) == {"demo.t001": "stop"}


def test_a_pause_says_first_what_trials_that_run_have_at_stake_as_far_as_that_is_known(
    specon_there: Specon, tmp_path: Path, part: Path
) -> None:
    here = ("--state-dir", str(tmp_path))
    states = part / "state"
    (states / "uid.demo.t000").mkdir(parents=True)
    (states / "uid.demo.t001" / "checkpoints" / "step-7").mkdir(parents=True)
    report = TimelineEvent(5.0, EventKind.REPORT, "demo.t000", step=12, value=0.5)
    TimelineFile(part / "timeline.jsonl").append([report])
    told = specon_there("pause", "demo-1", "--all", *here).stdout.splitlines()
    unless = "unless it keeps its own, what it has trained, up to step 12, is lost"
    assert told == [
        f"demo.t000 has saved no checkpoint that specon knows of; {unless}",
        "demo.t000: asked to pause",
        "demo.t001: asked to pause",
    ]
    (states / "uid.demo.t000" / "owner").write_text("token")
    assert "is lost" not in specon_there("pause", "demo-1", "--all", *here).stdout, "hooks save as they leave"
    assert "is lost" not in specon_there("stop", "demo-1", "--all", *here).stdout


def test_all_means_those_that_have_not_ended_and_a_stop_stays_a_stop(
    specon_there: Specon, tmp_path: Path, part: Path
) -> None:
    here = ("--state-dir", str(tmp_path))
    specon_there("stop", "demo-1", "t000", *here)
    assert specon_there("pause", "demo-1", "--all", *here).exit_code == 0
    assert asked(part) == {"demo.t000": "stop", "demo.t001": "pause"}
    nothing = specon_there("resume", "demo-1", "--trial", "t000", *here)
    assert nothing.exit_code == 2
    assert "There is no trial 't000' to ask: demo.t001." in nothing.stderr


def test_what_cannot_be_asked_is_told_and_changes_nothing(specon_there: Specon, tmp_path: Path, part: Path) -> None:
    here = ("--state-dir", str(tmp_path))
    for command, shown in (
        (("pause", "demo-1", "t002"), "There is no trial 't002' to ask: demo.t000, demo.t001."),
        (("stop", "demo-1"), "Name either trials or --all."),
        (("pause", "demo-1", "t000", "--all"), "Name either trials or --all."),
    ):
        result = specon_there(*command, *here)
        assert result.exit_code == 2
        assert shown in result.stderr
    (part.parent / "run.json").write_text(json.dumps({"name": "demo-1", "finished": True}))
    assert "Run demo-1 is over." in specon_there("pause", "demo-1", "t000", *here).stderr
    assert not (part / "asked.json").exists()


def test_in_a_cluster_the_workflow_is_annotated(specon_there: Specon, cluster: Cluster) -> None:
    before = {ANNOTATION_ADOPTED: "uid-vae-x1", ANNOTATION_ASKED: '{"vae.t001": "pause"}'}
    hold(cluster, workflow(annotations=before))

    result = specon_there("stop", "vae-x1", "t002")

    assert result.exit_code == 0, result.stderr
    (patch,) = [asked.body for asked in cluster.asked if asked.method == "PATCH"]
    assert patch["metadata"]["uid"] == "uid-vae-x1"
    assert json.loads(patch["metadata"]["annotations"][ANNOTATION_ASKED]) == {"vae.t001": "pause", "vae.t002": "stop"}


def test_in_a_cluster_the_last_one_that_goes_on_takes_the_annotation_away(
    specon_there: Specon, cluster: Cluster
) -> None:
    before = {ANNOTATION_ASKED: '{"vae.t001": "pause"}'}
    hold(cluster, workflow(annotations=before))

    result = specon_there("resume", "vae-x1", "--all")

    assert result.exit_code == 0, result.stderr
    (patch,) = [asked.body for asked in cluster.asked if asked.method == "PATCH"]
    assert patch["metadata"]["annotations"] == {ANNOTATION_ASKED: None}


def test_a_workflow_that_is_over_cannot_be_asked(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow(phase="Succeeded", finishedAt="2024-01-01T01:00:00Z"))
    result = specon_there("pause", "vae-x1", "--all")
    assert result.exit_code == 2
    assert "Workflow vae-x1 is over." in result.stderr


def test_another_policy_is_asked_for_here_and_shown(specon_there: Specon, tmp_path: Path, part: Path) -> None:
    here = ("--state-dir", str(tmp_path))
    asked = specon_there("set-policy", "demo-1", "specon:interval=10", *here)
    assert asked.exit_code == 0, asked.stderr
    assert (part / "set-policy").read_text() == "specon:interval=10"
    assert "policy ahead, then specon:interval=10" in specon_there("status", "demo-1", *here).stdout


@pytest.mark.parametrize(("policy", "told"), [("nonsense", "nonsense"), ("shortest-remaining", "simulator")])
def test_a_policy_that_cannot_steer_is_refused(
    specon_there: Specon, tmp_path: Path, part: Path, policy: str, told: str
) -> None:
    refused = specon_there("set-policy", "demo-1", policy, "--state-dir", str(tmp_path))
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert not (part / "set-policy").exists()


def test_a_pruner_is_refused_by_name_for_a_sweep_of_several_objectives(
    specon_there: Specon, tmp_path: Path, part: Path, cluster: Cluster
) -> None:
    about = {"name": "demo-1", "policies": ["ahead"], "further_objectives": "minimize latency"}
    (part.parent / "run.json").write_text(json.dumps(about))
    held = workflow()
    (template,) = (one for one in held["spec"]["templates"] if one["name"] == "vae-trial")
    template["metadata"]["annotations"][ANNOTATION_FURTHER_OBJECTIVES] = "minimize latency"
    hold(cluster, held)
    for sweep in ("demo-1", "vae-x1"):
        here = ("--state-dir", str(tmp_path))
        refused = specon_there("set-policy", sweep, "ahead+optuna:pruner=median", *here)
        assert refused.exit_code == 2
        assert "policy 'optuna' takes no sweep of several objectives" in refused.stderr
        assert specon_there("set-policy", sweep, "promote", *here).exit_code == 0
    assert [asked.method for asked in cluster.asked].count("PATCH") == 1


def test_in_a_cluster_another_policy_is_an_annotation(specon_there: Specon, cluster: Cluster) -> None:
    hold(cluster, workflow())
    result = specon_there("set-policy", "vae-x1", "specon")
    assert result.exit_code == 0, result.stderr
    (patch,) = [asked.body for asked in cluster.asked if asked.method == "PATCH"]
    assert patch["metadata"]["annotations"] == {ANNOTATION_SET_POLICY: "specon"}


def test_where_argo_offloads_its_record_the_trials_are_known_by_their_pods(
    specon_there: Specon, cluster: Cluster
) -> None:
    held = workflow(nodes=None, offloadNodeStatusVersion="fnv:1234567", annotations={})
    hold(cluster, held)
    del held["status"]["nodes"]
    over = pod(1, phase="Succeeded", state={"terminated": {"exitCode": 0}})
    cluster.objects[PODS] = listed(pod(0), over, pod(2))

    result = specon_there("pause", "vae-x1", "--all")

    assert result.exit_code == 0, result.stderr
    (patch,) = [asked.body for asked in cluster.asked if asked.method == "PATCH"]
    assert json.loads(patch["metadata"]["annotations"][ANNOTATION_ASKED]) == {"vae.t000": "pause", "vae.t002": "pause"}
