"""This version goes on with what earlier ones kept: a trial, an engine, a run folder, a workflow."""

import base64
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from controllers.core.engine import Memory
from controllers.core.policy import load_state
from controllers.driving.assembly import guard_policy
from controllers.local_run.run_folder import RunFolder, find_or_make_run, read_result
from controllers.policies.registry import parse_policy
from controllers.worlds.argo.meaning.view import ClusterView
from controllers.worlds.argo.reading.workflows import project_workflow
from controllers.worlds.argo.writing.state_store import ConfigMapStore
from controllers.worlds.local.engine_files import StateFile, elapsed_before
from controllers.worlds.local.jobs import load_ledger
from controllers.worlds.local.workflow import read_workflow
from hera_specon.records.run_folder import load_run, run_states
from hera_specon.report.page import page
from mlflow_hooks import contract
from mlflow_hooks.journal import POINTS
from mlflow_hooks.points import Point
from tests.controllers.worlds.argo.conftest import TIMING, fake  # noqa: F401 - a fixture
from tests.controllers.worlds.argo.fake_api import FakeApi
from tests.version_skew.half_done import STEPS, STOP_AT, TRIAL, TRIALS, HalfDone, Kept, train

FILES = Path(__file__).parent / "files"
VERSIONS = sorted(path for path in FILES.iterdir() if path.is_dir())
ENGINES = [path for version in VERSIONS for path in sorted((version / "engine").glob("*.json"))]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    for name in [name for name in os.environ if name.startswith(("SPECON_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    for name in ("STATE_ROOT", "TRIAL_ID", "OBJECTIVE", "ATTEMPT", "SWEEP_ID", "TRIAL_PARAMS"):
        monkeypatch.setenv(f"SPECON_{name}", "")  # put back as it was, after ``train`` has set it
    yield
    signal.signal(signal.SIGTERM, before)


def named(path: Path) -> str:
    return path.relative_to(FILES).as_posix()


@pytest.fixture(params=VERSIONS, ids=named)
def version(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a version wrote."""
    return Path(shutil.copytree(request.param, tmp_path / "kept"))


def test_there_is_something_to_go_on_with() -> None:
    assert VERSIONS
    assert len(ENGINES) >= 3


def test_a_trial_resumes_at_its_step_and_loses_and_doubles_none(version: Path) -> None:
    code, began, total = train(version / "hooks", "second")
    assert (code, began, total) == (0, STOP_AT + 1, sum(range(STEPS)))
    lines = (version / "hooks" / TRIAL / POINTS).read_bytes().splitlines()
    points = [point for point in map(Point.decode, lines) if point is not None]
    assert len(points) == len(lines)
    losses = [(point.step, point.value) for point in points if point.key == "loss"]
    assert losses == [(step, float(sum(range(step + 1)))) for step in range(STEPS)]
    for once in (contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_TOTAL):
        assert sum(point.key == once for point in points) == 1


def at(kept: dict[str, Any]) -> HalfDone:
    sweep = HalfDone(kept["policy"])
    while sweep.world.now < kept["at"]:
        sweep.step()
    return sweep


@pytest.mark.parametrize("file", ENGINES, ids=named)
def test_an_engine_goes_on_with_a_state_in_which_trials_moved_or_waited(file: Path) -> None:
    kept = json.loads(file.read_text())
    assert {"moving", "suspended", "suspending"} & set(kept["phases"])
    memory = TypeAdapter(Memory).validate_json(kept["state"])
    policy = guard_policy(parse_policy(kept["policy"]))
    assert memory.policy == policy.name
    assert load_state(policy, memory.decisions) != policy.initial(), "a policy that starts over is slow"
    sweep = at(kept)
    restored = sweep.restart(Kept(kept["state"]))
    assert restored._state == load_state(policy, memory.decisions)
    for _ in range(20_000):
        if sweep.world.finished:
            break
        sweep.step()
    assert sweep.ticks
    assert sum(one.phase.ended for one in sweep.world.trials()) == TRIALS


def test_the_state_in_a_config_map_is_read(version: Path, fake: FakeApi) -> None:  # noqa: F811
    content = (version / "engine" / "configmap.txt").read_text().strip()
    assert base64.b64decode(content)
    manifest = yaml.safe_load((version / "demo.yaml").read_text())
    fake.store.put("workflows", submitted(manifest))
    api = fake.client()
    with ClusterView(api, None, TIMING) as view:
        assert view.wait_synced(10)
        (campaign,) = view.campaigns("default")
    store = ConfigMapStore(api, campaign, lambda: 0.0)
    fake.store.put("configmaps", {**store._body(content), "apiVersion": "v1"})
    assert store.load() == json.loads((version / "engine" / "specon.json").read_text())["state"]
    api.close()


def submitted(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a workflow as the API server has it."""
    made = {"name": "demo-x1", "namespace": "ml", "uid": "uid-1", "creationTimestamp": "2026-11-22T10:00:00Z"}
    return {**manifest, "metadata": {**manifest["metadata"], **made}, "status": {"phase": "Running"}}


def test_a_workflow_that_was_submitted_is_steered_and_runs_here(version: Path) -> None:
    manifest = yaml.safe_load((version / "demo.yaml").read_text())
    record = project_workflow(submitted(manifest))
    assert record is not None
    assert record.sweeps
    planned = read_workflow(manifest, "demo", "uid", {}).trials()
    assert len(planned) > 1
    assert all(one.step.env[contract.ENV_TRIAL_ID].startswith("uid.") for one in planned)


def test_a_run_folder_is_told_reported_and_gone_on_with(version: Path) -> None:
    folder = version / "runs" / "demo-1"
    states = run_states(folder)
    assert [state.total for state in states] == [12, 12]
    assert all(state.over for state in states)
    record = load_run(folder)
    assert [run.policy for run in record.runs] == ["default", "specon+flowcon"]
    assert "specon+flowcon" in page(record)
    part = folder / "01-specon-flowcon"
    assert read_result(part) == record.runs[1].result
    kept = json.loads((version / "engine" / "specon.json").read_text())
    assert elapsed_before(part) == kept["at"]
    assert StateFile(part, lambda: kept["at"]).load() == kept["state"]
    assert load_ledger(part / "ledger.json").delays == {"wait": 4.0}


def test_an_unfinished_run_is_found_again_by_the_same_command(version: Path) -> None:
    again = find_or_make_run(version, "cut", {"workflow": "cut"}, fresh=False)
    assert again.resumed
    assert RunFolder(again.path, resumed=True).order()["source"] == "cut.yaml"
