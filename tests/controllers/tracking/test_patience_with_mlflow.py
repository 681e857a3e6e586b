"""Our own impatience with MLflow stays ours: trials wait as long as their author, or MLflow, wants."""

import os

import pytest
from mlflow.environment_variables import MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR

from controllers.tracking import access


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"PATH": "/bin", "MLFLOW_HTTP_REQUEST_TIMEOUT": "99"})
    monkeypatch.setattr(access, "_ours", set())


def test_what_we_set_ourselves_is_not_handed_on() -> None:
    access.be_impatient()
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"
    handed_on = access.environment_as_given()
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in handed_on
    assert "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR" not in handed_on
    assert handed_on["PATH"] == "/bin"
    assert handed_on["MLFLOW_DISABLE_TELEMETRY"] == "true"


def test_small_files_that_a_command_reads_draw_no_progress_bars() -> None:
    access.be_impatient()
    assert not MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR.get()  # type: ignore[no-untyped-call]  # MLflow has not annotated it


def test_what_its_owner_set_is_kept_and_handed_on() -> None:
    access.be_impatient()
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "99"
    assert access.environment_as_given()["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "99"
