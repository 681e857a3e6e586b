import json
from pathlib import Path

import pytest
import yaml

from hera_specon.workflow_file import load_workflow
from workflows import demo, mixed_sweep, pipeline
from workflows.jobs.train import MODELS
from workflows.regenerate import EXAMPLES, main, workflow_of, yaml_path


def items(example: str) -> list[dict[str, str]]:
    manifest = yaml.safe_load(yaml_path(example).read_text())
    template = next(part for part in manifest["spec"]["templates"] if part["name"] == manifest["spec"]["entrypoint"])
    found: list[dict[str, str]] = template["steps"][0][0]["withItems"]
    return found


def test_every_example_is_compared() -> None:
    folder = Path(demo.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__", "regenerate"} == set(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_yaml_beside_an_example_is_what_the_example_makes(example: str) -> None:
    """Where this fails after a wanted change: ``python -m workflows.regenerate``."""
    assert workflow_of(example).to_yaml() == yaml_path(example).read_text()


def test_regenerating_writes_what_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.regenerate.yaml_path", lambda example: tmp_path / f"{example}.yaml")
    main()
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(EXAMPLES)
    assert (tmp_path / "demo.yaml").read_text() == demo.w.to_yaml()


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("suffix", [".py", ".yaml"])
def test_example_is_a_sweep_that_can_be_run(example: str, suffix: str) -> None:
    sweep = "search" if example == "pipeline" else workflow_of(example).entrypoint
    assert load_workflow(yaml_path(example).with_suffix(suffix)).sweeps == (sweep,)


def test_the_pipeline_every_night_has_the_steps_of_the_one_that_runs_once() -> None:
    nightly = pipeline.nightly.to_dict()["spec"]
    assert nightly["workflowSpec"] == pipeline.w.to_dict()["spec"]
    assert nightly["schedules"] == ["0 3 * * *"]


@pytest.mark.parametrize("example", ["demo", "mixed_sweep"])
def test_mixed_sweeps_train_models_that_there_are(example: str) -> None:
    assert {item["model"] for item in items(example)} <= set(MODELS)


def test_demo_needs_no_tensorflow_and_mixes_five_models_and_lengths() -> None:
    models = {item["model"] for item in items("demo")}
    assert len(models) == 5
    assert all(model.endswith("pytorch") for model in models)
    assert len(items("demo")) >= 12
    assert len({item["steps"] for item in items("demo")}) > 2


def test_mixed_sweep_draws_from_both_frameworks() -> None:
    drawn = {item["model"].rsplit("-", 1)[1] for item in items("mixed_sweep")}
    assert drawn == {"pytorch", "keras"}
    assert set(mixed_sweep.MODELS) == {"vae", "gru", "birnn", "rnn", "dynamic-rnn"}


def test_vae_sweep_starts_a_trial_every_fifty_seconds() -> None:
    assert [json.loads(item["delay"].removesuffix("s")) for item in items("vae_sweep")] == [50 * n for n in range(20)]
