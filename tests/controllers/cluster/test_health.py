"""Alive means that the loop comes round; ready means able to lead, with the API server and MLflow heard."""

import urllib.error
import urllib.request
from dataclasses import dataclass

import pytest

from controllers.cluster.health import Health, HealthServer, MlflowProbe, PortError


@dataclass
class Body:
    """What health is judged by."""

    now: float = 0.0
    age: float = 0.0
    whole: bool = True
    mlflow: str | None = None

    def health(self) -> Health:
        return Health(lambda: self.now, 45.0, lambda: self.whole, lambda: self.age, lambda: self.mlflow)


def test_a_process_whose_loop_stands_still_is_dead() -> None:
    body = Body()
    health = body.health()
    body.now = 180.0
    assert health.why_dead() is None
    body.now = 181.0
    assert "the loop" in (health.why_dead() or "")
    health.looped()
    assert health.why_dead() is None


def test_an_outage_of_the_api_server_restarts_no_process() -> None:
    body = Body(age=10_000.0)
    assert body.health().why_dead() is None
    assert "API server" in (body.health().why_unready() or "")


@pytest.mark.parametrize(
    ("body", "told"),
    [(Body(whole=False), "seen whole"), (Body(mlflow="refused"), "refused"), (Body(age=999.0), "API server")],
    ids=["not synced", "no MLflow", "API server away"],
)
def test_a_process_that_could_not_lead_is_not_ready(body: Body, told: str) -> None:
    assert told in (body.health().why_unready() or "")


def test_a_standby_that_sees_everything_is_ready() -> None:
    assert Body().health().why_unready() is None


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_kubelet_is_told_what_is_wrong() -> None:
    problems: dict[str, str | None] = {"live": None, "ready": "not yet"}
    with HealthServer(0, {"/livez": lambda: problems["live"], "/readyz": lambda: problems["ready"]}) as server:
        assert ask(server.port, "/livez") == (200, "ok")
        assert ask(server.port, "/readyz?verbose") == (503, "not yet")
        assert ask(server.port, "/other")[0] == 404


def test_a_port_that_is_taken_is_named() -> None:
    with HealthServer(0, {}) as server, pytest.raises(PortError, match=str(server.port)):
        HealthServer(server.port, {})


def test_the_probe_tells_of_mlflow_going_and_coming(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[str | None] = ["refused", "refused", None, None, "away", None]
    told: list[bool] = []
    probe = MlflowProbe(lambda: answers.pop(0), told.append, 60.0)
    with caplog.at_level("INFO"):
        for _ in range(6):
            probe.ask_once()
    assert told == [False, False, True, True, False, True]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING", "INFO"]
    assert probe.problem is None
