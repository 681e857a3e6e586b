"""What the controller is told: flags before environment, all problems at once, nothing unchecked."""

import signal
import threading
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from controllers.cluster.settings import ControllerSettings, own_namespace
from hera_specon.cli import main
from hera_specon.cli.backend import Backend

URI = "http://mlflow:5000"
ENVIRONMENT = {"SPECON_CONTROLLER_MLFLOW_TRACKING_URI": URI, "POD_NAMESPACE": "own"}


@dataclass
class Started:
    """A backend that only takes note."""

    settings: list[ControllerSettings] = field(default_factory=list)

    def run(self, settings: ControllerSettings, stop: threading.Event) -> None:
        assert not stop.is_set()
        self.settings.append(settings)

    def backend(self) -> Backend:
        def never(*_: Any) -> Any:  # noqa: ANN401 - never called
            raise AssertionError

        return Backend(never, never, never, self.run)


def start(*arguments: str, **environment: str) -> tuple[Result, ControllerSettings | None]:
    started = Started()
    result = CliRunner(env={**ENVIRONMENT, **environment}).invoke(
        main, ["controller", *arguments], obj=started.backend()
    )
    return result, started.settings[0] if started.settings else None


def settings(*arguments: str, **environment: str) -> ControllerSettings:
    result, found = start(*arguments, **environment)
    assert found is not None, result.output
    return found


def test_without_a_word_it_steers_its_own_namespace_under_ahead() -> None:
    found = settings()
    assert (found.namespaces, found.policy, found.lease_namespace) == (("own",), "ahead", "own")
    assert found.leader_elect
    assert not found.recommend


@pytest.mark.parametrize(
    ("arguments", "environment", "name", "value"),
    [
        (["--namespace", "a", "--namespace", "b"], {"SPECON_CONTROLLER_NAMESPACE": "a,b"}, "namespaces", ("a", "b")),
        (["--all-namespaces"], {"SPECON_CONTROLLER_ALL_NAMESPACES": "true"}, "namespaces", ()),
        (["--policy", "flowcon"], {"SPECON_CONTROLLER_POLICY": "flowcon"}, "policy", "flowcon"),
        (["--interval", "9"], {"SPECON_CONTROLLER_INTERVAL": "9"}, "interval", 9.0),
        (["--recommend"], {"SPECON_CONTROLLER_RECOMMEND": "true"}, "recommend", True),
        (["--no-leader-elect"], {"SPECON_CONTROLLER_LEADER_ELECT": "false"}, "leader_elect", False),
        (["--lease-name", "x"], {"SPECON_CONTROLLER_LEASE_NAME": "x"}, "lease_name", "x"),
        (["--lease-namespace", "x"], {"SPECON_CONTROLLER_LEASE_NAMESPACE": "x"}, "lease_namespace", "x"),
        (["--health-port", "9"], {"SPECON_CONTROLLER_HEALTH_PORT": "9"}, "health_port", 9),
        (["--metrics-port", "9"], {"SPECON_CONTROLLER_METRICS_PORT": "9"}, "metrics_port", 9),
        (["--stale-after", "9"], {"SPECON_CONTROLLER_STALE_AFTER": "9"}, "stale_after", 9.0),
        (["--log-format", "text"], {"SPECON_CONTROLLER_LOG_FORMAT": "text"}, "log_format", "text"),
        (["--log-level", "debug"], {"SPECON_CONTROLLER_LOG_LEVEL": "debug"}, "log_level", "debug"),
        (["--kubeconfig", "x"], {"SPECON_CONTROLLER_KUBECONFIG": "x"}, "kubeconfig", "x"),
        (["--context", "x"], {"SPECON_CONTROLLER_CONTEXT": "x"}, "context", "x"),
        (
            ["--mlflow-tracking-uri", "http://m"],
            {"SPECON_CONTROLLER_MLFLOW_TRACKING_URI": "http://m"},
            "tracking_uri",
            "http://m",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_setting_is_taken_from_its_flag_and_from_the_environment(
    arguments: list[str], environment: dict[str, str], name: str, value: object
) -> None:
    assert getattr(settings(*arguments), name) == value
    assert getattr(settings(**environment), name) == value


def test_the_file_of_node_kinds_is_named_by_its_flag_and_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "kinds.yaml"
    file.write_text("prices: []")
    assert settings("--node-kinds", str(file)).node_kinds == str(file)
    assert settings(SPECON_CONTROLLER_NODE_KINDS=str(file)).node_kinds == str(file)


def test_a_flag_goes_before_the_environment() -> None:
    assert settings("--policy", "default", SPECON_CONTROLLER_POLICY="flowcon").policy == "default"


def test_mlflows_own_variable_is_understood() -> None:
    environment = {"SPECON_CONTROLLER_MLFLOW_TRACKING_URI": "", "MLFLOW_TRACKING_URI": "http://other"}
    assert settings(**environment).tracking_uri == "http://other"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--policy", "spacecon"], "spacecon"),
        (["--policy", "specon:alpha=7"], "alpha must be"),
        (["--namespace", "Team_A"], "Team_A"),
        (["--lease-name", "no name"], "no name"),
        (["--interval", "0"], "--interval 0"),
        (["--interval", "nan"], "--interval nan"),
        (["--stale-after", "-1"], "--stale-after -1"),
        (["--health-port", "70000"], "70000"),
        (["--health-port", "8080"], "both 8080"),
        (["--all-namespaces", "--namespace", "a"], "exclude each other"),
        (["--mlflow-tracking-uri", ""], "--mlflow-tracking-uri is missing"),
        (["--log-level", "loud"], "loud"),
        (["--node-kinds", "/no/such/file"], "--node-kinds: /no/such/file cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused_with_the_value_that_was_given(arguments: list[str], told: str) -> None:
    result, found = start(*arguments)
    assert found is None
    assert result.exit_code == 2
    assert told in result.stderr


def test_all_problems_are_told_at_once() -> None:
    result, _ = start("--policy", "spacecon", "--interval", "0", "--metrics-port", "0")
    assert all(told in result.stderr for told in ("spacecon", "--interval", "--metrics-port"))


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        settings().policy = "default"  # type: ignore[misc] # that is the point


def test_the_namespace_is_read_from_the_pod(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert own_namespace({}, file) == "default"
    file.write_text("team\n")
    assert own_namespace({}, file) == "team"
    assert own_namespace({"POD_NAMESPACE": "other"}, file) == "other"


def test_the_first_signal_asks_it_to_stop_and_afterwards_signals_mean_what_they_meant() -> None:
    before = signal.getsignal(signal.SIGTERM)
    asked: list[bool] = []

    def never(*_: Any) -> Any:  # noqa: ANN401 - never called
        raise AssertionError

    def run(_: ControllerSettings, stop: threading.Event) -> None:
        signal.raise_signal(signal.SIGTERM)
        asked.append(stop.is_set())

    CliRunner(env=ENVIRONMENT).invoke(main, ["controller"], obj=Backend(never, never, never, run))
    assert asked == [True]
    assert signal.getsignal(signal.SIGTERM) is before
