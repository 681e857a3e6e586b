"""A login goes to the MLflow that its owner named and to no other, and no artifact is read without end."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, Final

import pytest
from click.testing import CliRunner

from controllers.tracking.downloads import ArtifactTooLargeError, artifact_text
from controllers.tracking.logins import ForeignAddressError, check_address, check_artifacts, login_for
from controllers.tracking.sweep_runs import ForeignSweepError, Steering, open_sweep
from hera_specon.cli import main
from tests.hera_specon.cli.api_server import Cluster, running, write_kubeconfig
from tests.hera_specon.cli.cluster_objects import PODS, WORKFLOWS, listed, pod, workflow
from tests.hera_specon.report.example_run import write_example_run

SECRET: Final = "hunter2"  # noqa: S105 - nobody's
CHUNK: Final = b"x" * 2**16


@dataclass
class Heard:
    """What a server heard: the headers of each request; it answers ``body`` so many times over."""

    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    body: bytes = b'{"experiments": []}'
    times: int = 1
    sent: int = 0

    @property
    def logins(self) -> list[str]:
        return [one["Authorization"] for one in self.headers if "Authorization" in one]


@contextmanager
def listening(heard: Heard) -> Iterator[Heard]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.headers.append(dict(self.headers))
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.end_headers()
            try:
                for _ in range(heard.times):
                    self.wfile.write(heard.body)
                    heard.sent += len(heard.body)
            except OSError:
                self.close_connection = True

        do_POST = do_GET  # noqa: N815 - the name that the library wants

        def log_message(self, *arguments: object) -> None:
            del arguments

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        heard.url = f"http://127.0.0.1:{server.server_port}"
        yield heard
        server.shutdown()


@pytest.fixture
def stranger() -> Iterator[Heard]:
    with listening(Heard()) as heard:
        yield heard


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("NETRC", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    return tmp_path


def log_in(way: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "password":
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", SECRET)
    elif way == "token":
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", SECRET)
    elif way == "file":
        (home / ".mlflow").mkdir()
        (home / ".mlflow" / "credentials").write_text(
            f"[mlflow]\nmlflow_tracking_username = ada\nmlflow_tracking_password = {SECRET}\n"
        )
    elif way == "sigv4":
        monkeypatch.setenv("MLFLOW_TRACKING_AWS_SIGV4", "true")
    else:
        (home / ".netrc").write_text(f"default login ada password {SECRET}\n")
        (home / ".netrc").chmod(0o600)


WAYS: Final = ("password", "token", "file", "netrc", "sigv4")


def hold(cluster: Cluster, mlflow: str) -> None:
    held = workflow(mlflow=mlflow)
    cluster.objects |= {WORKFLOWS: listed(held), PODS: listed(pod(0)), f"{WORKFLOWS}/vae-x1": held}


@pytest.mark.parametrize("way", WAYS)
def test_status_sends_no_login_to_an_address_that_a_workflow_names(
    way: str, stranger: Heard, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(way, home, monkeypatch)
    with running() as cluster:
        hold(cluster, stranger.url)
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(home, cluster.url)))
        done = CliRunner().invoke(main, ["status", "-n", "lab"])
    assert done.exit_code == 0, done.output
    assert "add --mlflow-tracking-uri" in done.stdout
    assert not stranger.headers
    assert SECRET not in done.output


def test_status_asks_the_address_of_a_workflow_where_there_is_no_login_to_lose(
    stranger: Heard, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as cluster:
        hold(cluster, stranger.url)
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(home, cluster.url)))
        CliRunner().invoke(main, ["status", "-n", "lab"])
    assert stranger.headers
    assert not stranger.logins


def test_a_login_goes_to_the_address_that_its_owner_names(
    stranger: Heard, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in("password", home, monkeypatch)
    with running() as cluster:
        hold(cluster, "http://elsewhere:5000")
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(home, cluster.url)))
        CliRunner().invoke(main, ["status", "-n", "lab", "--mlflow-tracking-uri", stranger.url])
    assert stranger.logins


@pytest.mark.parametrize("way", WAYS)
def test_replay_sends_no_login_to_an_address_that_a_folder_names(
    way: str, stranger: Heard, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(way, home, monkeypatch)
    folder = write_example_run(home / ".specon")
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "tracking_uri": stranger.url}))
    done = CliRunner().invoke(main, ["replay", str(folder)])
    assert done.exit_code == 2
    assert "add --mlflow-tracking-uri" in done.output
    assert not stranger.headers


@pytest.mark.parametrize("uri", ["sqlite:////etc/x.db", "postgresql://db/x", "databricks", "file:///etc", ""])
def test_a_file_that_a_folder_names_is_not_opened(uri: str) -> None:
    with pytest.raises(ForeignAddressError, match="is not the address of an MLflow server"):
        check_address(uri, "run.json")


def client_of(uri: str) -> Any:  # noqa: ANN401 - stands for a client that is only asked for its address
    return SimpleNamespace(tracking_uri=uri)


@pytest.mark.parametrize(
    ("artifacts", "refused"),
    [
        ("mlflow-artifacts:/1/r/artifacts", False),
        ("mlflow-artifacts://mine/1", False),
        ("https://mine:443/api/2.0/mlflow-artifacts/artifacts/1", False),
        ("s3://bucket/1", False),
        ("/srv/mlruns/1", False),
        ("mlflow-artifacts://evil:5000/1", True),
        ("http://evil/1", True),
        ("http://mine/1", True),
        ("https://mine:8443/1", True),
        ("https://mine@evil/1", True),
        ("https://mine:x/1", True),
    ],
)
def test_artifacts_that_lie_on_another_server_get_no_login(
    artifacts: str, *, refused: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_artifacts(client_of("https://mine"), "r", artifacts)
    log_in("token", home, monkeypatch)
    if refused:
        with pytest.raises(ForeignAddressError, match=r"the login .* is not sent there"):
            check_artifacts(client_of("https://mine"), "r", artifacts)
    else:
        check_artifacts(client_of("https://mine"), "r", artifacts)


def test_the_controller_keeps_no_record_where_its_login_would_go_to_another_server(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in("token", home, monkeypatch)
    info = SimpleNamespace(run_id="r", artifact_uri="mlflow-artifacts://evil:5000/1")
    client = client_of("https://mine")
    client.get_experiment_by_name = lambda _: SimpleNamespace(experiment_id="1")
    client.search_runs = lambda *_, **__: []
    client.create_run = lambda *_, **__: SimpleNamespace(info=info)
    with pytest.raises(ForeignSweepError, match="evil:5000"):
        open_sweep(client, "uid.vae", "shared", Steering("t", "ahead", "uid", "lab"))


def test_whoever_has_no_login_has_none_to_lose() -> None:
    assert login_for("http://evil") is None


def test_an_artifact_is_read_as_far_as_it_may_be_long_and_no_further() -> None:
    with listening(Heard(body=CHUNK, times=4096)) as heard:
        run: Any = SimpleNamespace(info=SimpleNamespace(artifact_uri="mlflow-artifacts:/1/r/artifacts"))
        with pytest.raises(ArtifactTooLargeError):
            artifact_text(client_of(heard.url), run, "result.json", 10 * len(CHUNK))
    assert heard.sent < 1000 * len(CHUNK)


def test_an_artifact_of_a_folder_that_is_too_long_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(CHUNK)
    run: Any = SimpleNamespace(info=SimpleNamespace(artifact_uri=str(tmp_path)))
    with pytest.raises(ArtifactTooLargeError):
        artifact_text(client_of("http://mine"), run, "result.json", len(CHUNK) - 1)
    assert artifact_text(client_of("http://mine"), run, "result.json", len(CHUNK)) == CHUNK.decode()
