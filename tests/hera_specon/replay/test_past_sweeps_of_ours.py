"""Our own sweeps read back: a run's folder with its MLflow, and the record that a controller keeps in MLflow alone."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.core.model import Direction, TrialId
from controllers.lab.simulation.past_sweeps.past_sweep import Logged, PastSweep
from controllers.policies.registry import parse_policy
from hera_specon.display.simulated import verdicts
from hera_specon.replay.past_sweeps import KnownObjective
from hera_specon.replay.replaying import WhatIf, replay
from hera_specon.replay.sources import Past, Where, find_past
from mlflow_hooks import contract
from tests.controllers.lab.simulation.past_sweeps.past import EPOCH, NODES, past_sweep, simulated, trials
from tests.hera_specon.replay.tracked import new_client

UID = "past-1-abcd-00"
SWEEP = f"{UID}.vae"
SPECS = tuple(replace(spec, id=TrialId(f"vae.{spec.id}")) for spec in trials(3))


@dataclass(frozen=True)
class Kept:
    """A run's folder, and its MLflow as a server's users see it."""

    folder: Path
    client: MlflowClient


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    state = tmp_path_factory.mktemp("state")
    folder = state / "runs" / "past-1"
    part = folder / "00-default"
    part.mkdir(parents=True)
    run = simulated(SPECS)
    about = {
        "nodes": 2, "cpus_per_node": 0.5, "policies": ["default"], "uid_suffix": "abcd",
        "objective": "loss", "direction": "minimize", "name": "past-1",
    }  # fmt: skip
    timeline = "".join(f"{event.to_json()}\n" for event in run.timeline)
    result = json.dumps(run.result.to_dict())
    (folder / "run.json").write_text(json.dumps(about))
    (part / "timeline.jsonl").write_text(timeline)
    (part / "result.json").write_text(result)
    (part / "engine.json").write_text(json.dumps({"began_epoch_s": EPOCH}))
    (state / "mlflow").mkdir()
    client = new_client(state / "mlflow")
    experiment = client.create_experiment("vae", artifact_location=str(state / "artifacts"))
    parent = client.create_run(
        experiment, run_name="past-x7k2p · default", tags={contract.TAG_SWEEP_ID: SWEEP, "specon.policy": "default"}
    ).info.run_id
    client.log_text(parent, timeline, "timeline/1000-000001.jsonl")
    client.log_text(parent, result, "result.json")
    log_trials(client, experiment, parent, past_sweep(SPECS))
    return Kept(folder, client)


def log_trials(client: MlflowClient, experiment: str, parent: str, sweep: PastSweep) -> None:
    for trial in sweep.trials:
        tags = {
            contract.TAG_TRIAL_ID: f"{UID}.{trial.id}",
            contract.TAG_SWEEP_ID: SWEEP,
            "mlflow.parentRunId": parent,
        }
        run = client.create_run(experiment, start_time=round(trial.began_epoch_s * 1000), tags=tags).info.run_id
        log(client, run, "loss", trial.objective)
        log(client, run, "accuracy", [replace(point, value=1 - point.value) for point in trial.objective])
        log(client, run, contract.METRIC_CPU_SECONDS, trial.cpu_seconds)
        client.log_metric(run, contract.METRIC_OBJECTIVE_FIRST, trial.objective[0].value)
        client.set_terminated(run)
        # A request for a run that MLflow heard twice leaves one without data.
        client.create_run(experiment, start_time=round(trial.began_epoch_s * 1000) + 1, tags=tags)


def log(client: MlflowClient, run: str, name: str, points: Iterable[Logged]) -> None:
    metrics = [Metric(name, point.value, round(point.at * 1000), point.step) for point in points]
    for start in range(0, len(metrics), 900):
        client.log_batch(run, metrics=metrics[start : start + 900])


def assert_as_it_was(past: Past) -> None:
    (found,) = past.sweeps
    was = past_sweep(SPECS)
    assert (found.policy, found.direction) == ("default", Direction.MINIMIZE)
    assert [node.name for node in found.nodes] == [node.name for node in NODES]
    for trial, expected in zip(found.trials, was.trials, strict=True):
        assert (trial.id, trial.first_node, trial.cpu) == (expected.id, expected.first_node, expected.cpu)
        assert trial.completed_at == pytest.approx(expected.completed_at)
        assert [point.value for point in trial.objective] == [point.value for point in expected.objective]
        assert [point.value for point in trial.cpu_seconds] == [point.value for point in expected.cpu_seconds]
        assert [stay.node for stay in trial.stays] == [stay.node for stay in expected.stays]


def test_a_run_of_this_machine_is_read_from_its_folder_and_its_mlflow(kept: Kept) -> None:
    past = find_past(str(kept.folder), Where(Path("elsewhere"), None, None, KnownObjective()))
    assert_as_it_was(past)
    assert past.origin == "local"
    assert past.sweeps[0].began_epoch_s == EPOCH


def test_a_run_on_nodes_of_different_size_is_read_with_them(kept: Kept) -> None:
    described = kept.folder / "run.json"
    about = described.read_text()
    described.write_text(json.dumps({**json.loads(about), "cpus_per_node": [0.5, 0.25]}))
    try:
        past = find_past(str(kept.folder), Where(Path("elsewhere"), None, None, KnownObjective()))
    finally:
        described.write_text(about)
    assert [node.cpu for node in past.sweeps[0].nodes] == [0.5, 0.25]


def test_a_sweep_of_a_cluster_is_read_from_mlflow_alone(kept: Kept) -> None:
    past = find_past("past-x7k2p", Where(Path("elsewhere"), str(kept.client.tracking_uri), 0.5, KnownObjective()))
    assert_as_it_was(past)
    assert past.origin == "argo"


def test_the_size_of_a_cluster_s_nodes_must_be_told(kept: Kept) -> None:
    with pytest.raises(SpeconError, match="does not tell how large its nodes were: add --cpus-per-node"):
        find_past("past-x7k2p", Where(Path("elsewhere"), str(kept.client.tracking_uri), None, KnownObjective()))


def test_a_run_that_has_not_finished_is_refused(kept: Kept, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "past-1"
    (folder / "00-default").mkdir(parents=True)
    (folder / "run.json").write_text((kept.folder / "run.json").read_text())
    timeline = (kept.folder / "00-default" / "timeline.jsonl").read_text()
    (folder / "00-default" / "timeline.jsonl").write_text(timeline)
    where = Where(tmp_path, str(kept.client.tracking_uri), None, KnownObjective())
    with pytest.raises(SpeconError, match="past-1 has not finished under default"):
        find_past("past-1", where)


@pytest.mark.parametrize("broken", ['{"nodes": "many", "cpus_per_node": 0.5}', '{"nodes": 2}'])
def test_a_run_that_does_not_tell_its_nodes_is_refused_by_file(kept: Kept, tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "runs" / "past-1"
    part = folder / "00-default"
    part.mkdir(parents=True)
    (folder / "run.json").write_text(broken)
    for name in ("timeline.jsonl", "result.json"):
        (part / name).write_text((kept.folder / "00-default" / name).read_text())
    with pytest.raises(SpeconError, match=r"run\.json does not tell nodes and cpus_per_node"):
        find_past("past-1", Where(tmp_path, str(kept.client.tracking_uri), None, KnownObjective()))


def test_a_policy_that_is_not_known_here_leaves_nothing_to_check_against(kept: Kept) -> None:
    past = find_past(str(kept.folder), Where(Path("elsewhere"), None, None, KnownObjective()))
    unknown = replace(past, sweeps=(replace(past.sweeps[0], policy="ofother"),), origin="argo")
    policies = {name: parse_policy(name) for name in ("default", "longest-remaining")}
    replayed = replay(unknown, WhatIf(None, None, "free", 1.0), policies, 2)
    assert replayed.checks == ()
    assert "ofother is taken to have had its default parameters" in replayed.recording.assumptions
    (verdict,) = verdicts(replayed)
    assert verdict.startswith("longest-remaining would have changed the makespan by")
    assert "off what really happened" not in verdict


def test_a_run_beside_its_own_simulation_is_found_true(kept: Kept) -> None:
    past = find_past(str(kept.folder), Where(Path("elsewhere"), None, None, KnownObjective()))
    replayed = replay(past, WhatIf(None, None, "free", 1.0), {"default": parse_policy("default")}, 2)
    (found,) = replayed.checks
    assert abs(found.makespan_error) < 0.02
    assert abs(found.worst_completion_error) < 0.05


def test_other_nodes_can_be_asked_for(kept: Kept) -> None:
    past = find_past(str(kept.folder), Where(Path("elsewhere"), None, None, KnownObjective()))
    replayed = replay(past, WhatIf(3, 2.0, None, 1.0), {"default": parse_policy("default")}, 1)
    assert [node.cpu for node in replayed.recording.workload.nodes] == [2.0] * 3
    assert "it ran on 2 nodes of 1 cores together, and is simulated on 3 of 6" in replayed.recording.assumptions
    (check,) = replayed.checks
    assert abs(check.makespan_error) < 0.02
    assert replayed.forecasts[0].results[0].makespan_s < 0.7 * past.sweeps[0].makespan_s
