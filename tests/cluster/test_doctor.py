"""``specon doctor`` on a real cluster: healthy, and with three things broken."""

import json
from typing import Any, Final

import pytest
from click.testing import CliRunner

from hera_specon.cli import main
from tests.cluster.argo_install import EXECUTOR_ROLE
from tests.cluster.sweeps import descent_sweep
from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.descent_sweep import CLAIM

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
FROM_WITHIN: Final = ("gate", "executor", "resize tried", "DNS", "MLflow", "checkpoints", "clock", "user", "image")


def examined(bench: Bench, mlflow: str = "") -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code of the command, and its findings by subject."""
    access = ["--kubeconfig", str(bench.cluster.kubeconfig), "--namespace", bench.namespace]
    address = ["--mlflow-tracking-uri", mlflow or bench.tracking.uri_for_pods]
    command = ["doctor", str(descent_sweep.__file__), "--json", "--timeout", "180", *access, *address]
    result = CliRunner().invoke(main, command)
    told = json.loads(result.stdout)
    return result.exit_code, {finding["subject"]: finding for finding in told["findings"]}


def check_nothing_is_left(bench: Bench) -> None:
    bench.wait(lambda: not bench.kubectl.items("workflows"), "the try-out's workflow is gone", 30)
    bench.wait(lambda: not bench.kubectl.items("pods"), "the try-out's pod is gone", 60)


def test_a_healthy_cluster_is_ok_from_within_a_pod_too(bench: Bench) -> None:
    code, found = examined(bench)

    assert code == 0, found
    assert {subject: found[subject]["verdict"] for subject in FROM_WITHIN} == dict.fromkeys(FROM_WITHIN, "ok"), found
    assert found["resize tried"]["found"].endswith("its share of the CPU changed")
    for subject in ("Kubernetes", "namespace", "nodes", "Argo's API", "Argo's version", "service account"):
        assert found[subject]["verdict"] in {"ok", "cannot tell"}, found[subject]
    assert not [one for one in found.values() if one["verdict"] == "fault"]
    check_nothing_is_left(bench)


def test_an_executor_without_its_role_is_found_by_asking_and_by_the_pod(bench: Bench) -> None:
    bench.kubectl("delete", "rolebinding", EXECUTOR_ROLE)

    code, found = examined(bench)

    assert code == 1
    assert found["service account"]["verdict"] == "fault", found
    assert f"--serviceaccount={bench.namespace}:default" in found["service account"]["command"]
    assert found["MLflow"]["verdict"] == "ok", found
    assert "executor" not in found
    check_nothing_is_left(bench)


def test_a_claim_that_is_gone_is_found_and_not_waited_for(bench: Bench) -> None:
    bench.kubectl("delete", "persistentvolumeclaim", CLAIM)

    code, found = examined(bench)

    assert code == 1
    assert found[f"claim {CLAIM}"]["verdict"] == "fault", found
    assert CLAIM in found["try-out"]["found"], found
    check_nothing_is_left(bench)


def test_mlflow_that_is_away_is_found_from_within_the_pod(bench: Bench) -> None:
    host = bench.tracking.uri_for_pods.rpartition(":")[0]

    code, found = examined(bench, mlflow=f"{host}:1")

    assert code == 1
    assert found["MLflow"]["verdict"] == "fault", found
    assert found["checkpoints"]["verdict"] == "ok", found
    assert found["executor"]["verdict"] == "ok", found
    check_nothing_is_left(bench)
