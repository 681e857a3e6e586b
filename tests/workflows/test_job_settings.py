import pytest

from workflows.jobs import train
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=0.01, steps=10, hidden=8, batch_size=4, work=2)


def test_what_is_not_given_is_the_jobs_own() -> None:
    assert parse_settings(DEFAULTS, []) == DEFAULTS


@pytest.mark.parametrize("name", ["--batch-size", "--batch_size"])
def test_names_may_be_spelt_as_in_python(name: str) -> None:
    assert parse_settings(DEFAULTS, [f"{name}=32", "--lr=1e-4"]).batch_size == 32


@pytest.mark.parametrize(
    "argument", ["--lr=0", "--lr=-1", "--lr=nan", "--lr=inf", "--steps=0", "--hidden=2.5", "--seed=-3"]
)
def test_impossible_values_are_refused_and_named(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_settings(DEFAULTS, [argument])
    name, value = argument.split("=")
    message = capsys.readouterr().err
    assert name in message
    assert value in message


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(SystemExit):
        parse_settings(DEFAULTS, ["--dropout=0.1"])


def test_unknown_model_is_refused_with_the_list_of_models(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train.main(["--model=vae-jax"])
    message = capsys.readouterr().err
    assert "vae-jax" in message
    assert all(model in message for model in train.MODELS)


@pytest.mark.parametrize("model", [name for name in train.MODELS if name.endswith("pytorch")])
@pytest.mark.pytorch
def test_dispatch_hands_the_other_arguments_to_the_job(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    with pytest.raises(SystemExit):
        train.main([f"--model={model}", "--steps=none"])
    assert "none" in capsys.readouterr().err
