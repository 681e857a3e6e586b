"""MLflow hangs, dies or stays away as a local sweep ends: the result is right, and in the end MLflow has everything."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.core.errors import SpeconError
from controllers.local_run import finishing
from controllers.local_run.order import LocalSettings
from controllers.local_run.run import LocalRun, run_locally
from controllers.policies.registry import parse_policy
from controllers.worlds.local import mlflow_server
from controllers.worlds.local.mlflow_server import LocalMlflow
from hera_specon.display.screens import PlainScreen
from tests.cases.mlflow_at_the_end import STEPS, runs_in, workflow

pytestmark = pytest.mark.slow

WHOLE = {"end": ("FINISHED", 0), "end.t000": ("FINISHED", STEPS)}


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the screen said, in a user's empty folder, to somebody with little patience."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(finishing, "HUNG_AFTER_S", 2.0)
    monkeypatch.setattr(finishing, "GIVE_UP_S", 4.0)
    lines: list[str] = []
    yield lines
    print("\n".join(lines))  # noqa: T201 - for the reader who asks why it failed


def run(harm: str, said: list[str]) -> LocalRun:
    settings = LocalSettings(nodes=1, cpus_per_node=0.5, state_dir=Path(".specon"))
    screen = PlainScreen(said.append)
    return run_locally(workflow(harm, 0), Path("sweep.py"), [parse_policy("default")], settings, screen)


def patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait as long as users do from here on: a server that is there may be slow on a busy machine."""
    monkeypatch.setattr(finishing, "HUNG_AFTER_S", 60.0)
    monkeypatch.setattr(finishing, "GIVE_UP_S", 120.0)


def finals(done: LocalRun) -> list[float | None]:
    return [one.final_metric for one in done.results[0].trials]


def test_a_server_of_our_own_that_hangs_is_started_again_and_gets_the_rest(said: list[str]) -> None:
    done = run("SIGSTOP", said)
    assert (done.lacking, finals(done)) == ("", [1 / STEPS])
    assert runs_in(Path(".specon/mlflow/mlflow.db")) == WHOLE


def test_without_the_users_server_the_result_is_right_and_a_later_command_sends_the_rest(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = LocalMlflow(Path("mlflow"))
    server.start()
    try:
        server.wait_ready()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
        done = run("SIGKILL", said)
        assert finals(done) == [1 / STEPS]
        assert "lacks" in done.lacking
        assert any("waiting" in line for line in said)
        assert runs_in(Path("mlflow/mlflow.db"))["end"][0] == "RUNNING"
        server.keep_alive()
        server.wait_ready()
        patiently(monkeypatch)
        again = run("SIGKILL", said)
    finally:
        server.close()
    assert (again.lacking, again.folder, finals(again)) == ("", done.folder, [1 / STEPS])
    assert runs_in(Path("mlflow/mlflow.db")) == WHOLE
    assert not json.loads((again.folder / "run.json").read_text()).get("finished")
    again.conclude()
    assert json.loads((again.folder / "run.json").read_text())["finished"]


def test_a_server_of_our_own_that_never_comes_up_costs_no_trial_and_no_result(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(mlflow_server, "own_command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
        patched.setattr(mlflow_server, "_PAUSE_S", 0.5)
        done = run("", said)
    assert finals(done) == [1 / STEPS]
    assert "lacks" in done.lacking
    assert sum("did not come up" in line for line in said) == 1
    # MLflow gets it all as soon as there is one.
    patiently(monkeypatch)
    again = run("", said)
    assert (again.lacking, again.folder, finals(again)) == ("", done.folder, [1 / STEPS])
    assert runs_in(Path(".specon/mlflow/mlflow.db")) == WHOLE


def test_a_controller_that_dies_before_it_has_closed_the_sweep_closes_it_the_next_time(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(SpeconError):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr("controllers.local_run.sweep.wait_for", killed)
        with pytest.raises(KilledError):
            run("", said)
    database = Path(".specon/mlflow/mlflow.db")
    again = run("", said)
    assert (again.folder.name, finals(again)) == ("end-1", [1 / STEPS])
    assert runs_in(database) == WHOLE
    # A caller that was killed before it showed the result is shown it by the same call, which trains nothing.
    shown = run("", said)
    assert (shown.folder, finals(shown)) == (again.folder, finals(again))
    assert runs_in(database) == WHOLE
