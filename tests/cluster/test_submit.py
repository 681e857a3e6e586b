"""``specon submit``, ``status`` and ``release`` on a real cluster."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from controllers.core.labels import ANNOTATION_ADOPTED, ANNOTATION_FIRST_NODES, GATE_PLACEMENT
from hera_specon.cli import main
from tests.cluster import flags_sweep, shell_sweep
from tests.cluster.any_cluster import AnyCluster
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
Specon = Callable[..., Result]
ARGO_SERVER: Final = "http://10.90.0.10:2746"
MOVED_ONCE: Final = "sleep 3; test {{retries}} != 0 || exit 75"
SHELL: Final = shell_sweep.__file__
FLAGS: Final = flags_sweep.__file__


@pytest.fixture
def specon(cluster: AnyCluster, namespace: Kubectl) -> Specon:
    access = ["--kubeconfig", str(cluster.kubeconfig), "-n", namespace.namespace]
    return lambda command, *arguments: CliRunner().invoke(main, [command, *arguments, *access])


def created(result: Result) -> str:
    assert result.exit_code == 0, result.stderr
    name: str = json.loads(result.stdout)["name"]
    return name


def pods(namespace: Kubectl, workflow: str) -> list[JsonObject]:
    return namespace.items("pods", f"--selector=workflows.argoproj.io/workflow={workflow}")


def gated(namespace: Kubectl, workflow: str) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in pods(namespace, workflow)
        if GATE_PLACEMENT in [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]
    ]


def phase(namespace: Kubectl, workflow: str) -> str:
    return str(namespace.get("workflow", workflow).get("status", {}).get("phase"))


def state(specon: Specon, workflow: str) -> dict[str, Any]:
    result = specon("status", workflow, "--json", "--mlflow-tracking-uri", "http://127.0.0.1:9")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_sweep_is_submitted_and_waited_for(specon: Specon, namespace: Kubectl) -> None:
    result = specon("submit", SHELL, "--wait")

    assert result.exit_code == 0, result.stderr
    name = result.stdout.split()[2]
    assert f"{name}: Succeeded" in result.stderr
    containers = [container for pod in pods(namespace, name) for container in pod["spec"]["containers"]]
    assert len(containers) == 4
    assert all("cpu" in container["resources"]["requests"] for container in containers)
    assert all(pod["spec"]["securityContext"]["runAsNonRoot"] for pod in pods(namespace, name))
    told = state(specon, name)
    assert (told["phase"], told["over"]) == ("Succeeded", True)
    assert [(trial["phase"], trial["attempt"]) for trial in told["trials"]] == [("succeeded", 1)] * 2
    assert {trial["node"] for trial in told["trials"]} == {pod["spec"]["nodeName"] for pod in pods(namespace, name)}


def test_a_sweep_that_fails_is_told_when_it_was_waited_for(specon: Specon) -> None:
    result = specon("submit", SHELL, "--wait", "-p", "does=exit 3")

    assert result.exit_code == 1
    assert "failed" in result.stderr


def test_each_attempt_knows_its_own_pod_and_node(specon: Specon, namespace: Kubectl) -> None:
    told = 'echo "$SPECON_TRIAL_ID $SPECON_ATTEMPT $SPECON_NODE"; echo "$MLFLOW_RUN_CONTEXT"'
    does = f"{told}; test {{{{retries}}}} != 0 || exit 75"
    name = created(specon("submit", SHELL, "--json", "-p", f"does={does}"))
    wait_until(lambda: phase(namespace, name) == "Succeeded", f"{name} has succeeded", 120, interval=0.5)

    uid = namespace.get("workflow", name)["metadata"]["uid"]
    for pod in pods(namespace, name):
        log = namespace("logs", pod["metadata"]["name"], "--container", "main")
        trial = pod["metadata"]["labels"]["hera-specon.io/trial"]
        said, attempt = f"{uid}.shell.{trial}", pod["metadata"]["uid"]
        assert f"{said} {attempt} {pod['spec']['nodeName']}" in log.splitlines()
        # The tags of the runs that its program may make by MLflow's own library.
        tags = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
        assert (tags["specon.trial_id"], tags["specon.attempt"]) == (said, attempt)
        assert (tags["specon.sweep_id"], tags["mlflow.runName"]) == (f"{uid}.shell", trial)


def test_words_that_depend_on_hyperparameters_are_left_out_or_come_one_by_one(
    specon: Specon, namespace: Kubectl
) -> None:
    name = created(specon("submit", FLAGS, "--json"))
    wait_until(lambda: phase(namespace, name) == "Succeeded", f"{name} has succeeded", 120, interval=0.5)
    said = {namespace("logs", pod["metadata"]["name"], "--container", "main") for pod in pods(namespace, name)}
    assert {frozenset(words.strip().splitlines()[-1].strip("<>").split("><")) for words in said} == {
        frozenset({"--lr=0.1", "--hidden", "64", "32", *amp}) for amp in (["--amp"], [])
    }


def test_without_a_controller_a_trial_that_leaves_its_node_goes_on_by_itself(
    specon: Specon, namespace: Kubectl
) -> None:
    name = created(specon("submit", SHELL, "--json", "-p", f"does={MOVED_ONCE}"))

    wait_until(lambda: phase(namespace, name) == "Succeeded", f"{name} has succeeded", 120, interval=0.5)
    assert [trial["attempt"] for trial in state(specon, name)["trials"]] == [2, 2]


def test_what_waits_for_a_controller_that_is_gone_can_be_released(specon: Specon, namespace: Kubectl) -> None:
    name = created(specon("submit", SHELL, "--json", "-p", f"does={MOVED_ONCE}"))
    uid = namespace.get("workflow", name)["metadata"]["uid"]
    namespace("annotate", "workflow", name, f"{ANNOTATION_ADOPTED}={uid}")
    wait_until(lambda: len(gated(namespace, name)) == 2, "both next attempts wait", 90, interval=0.5)
    assert state(specon, name)["steered"] == "a controller steers it"
    listed = specon("release", name, "--dry-run").stdout

    result = specon("release", name, "--yes")

    assert result.exit_code == 0, result.stderr
    assert listed.count("waits (trial shell.t00") == 2
    wait_until(lambda: phase(namespace, name) == "Succeeded", f"{name} has succeeded", 120, interval=0.5)
    assert ANNOTATION_ADOPTED not in namespace.get("workflow", name)["metadata"].get("annotations", {})
    assert "Nothing waits" in specon("release", "--all").stdout


def test_first_attempts_wait_where_that_was_asked_for(specon: Specon, namespace: Kubectl) -> None:
    name = created(specon("submit", SHELL, "--json", "--gate-first"))
    wait_until(lambda: len(gated(namespace, name)) == 2, "both first attempts wait", 60, interval=0.5)

    assert [trial["phase"] for trial in state(specon, name)["trials"]] == ["pending (gated)"] * 2
    assert specon("release", name, "--yes").exit_code == 0
    wait_until(lambda: phase(namespace, name) == "Succeeded", f"{name} has succeeded", 120, interval=0.5)


def test_the_first_nodes_of_an_earlier_workflow_are_found(specon: Specon, namespace: Kubectl) -> None:
    before = specon("submit", SHELL, "--wait").stdout.split()[2]
    ran_on = {
        f"shell.{pod['metadata']['labels']['hera-specon.io/trial']}": pod["spec"]["nodeName"]
        for pod in pods(namespace, before)
    }

    name = created(specon("submit", SHELL, "--json", "--first-nodes-of", before))

    annotations = namespace.get("workflow", name)["metadata"]["annotations"]
    assert json.loads(annotations[ANNOTATION_FIRST_NODES]) == ran_on
    wait_until(lambda: len(gated(namespace, name)) == 2, "both first attempts wait", 60, interval=0.5)


def test_a_sweep_goes_through_argo_server_by_the_token_of_its_owner(
    cluster: AnyCluster, namespace: Kubectl, tmp_path: Path
) -> None:
    if not hasattr(cluster, "nodes"):
        pytest.skip("ARGO SERVER IS NOT TESTED: where it listens is only known of our own cluster")
    allowed = ["--verb=create,get", "--resource=workflows.argoproj.io"]
    namespace("create", "serviceaccount", "owner")
    namespace("create", "serviceaccount", "stranger")
    namespace("create", "role", "submits", *allowed)
    account = f"--serviceaccount={namespace.namespace}:owner"
    namespace("create", "rolebinding", "owner-submits", "--role=submits", account)
    results = {}
    for name in ("owner", "stranger"):
        token = tmp_path / name
        token.write_text(namespace("create", "token", name))
        through = ["--argo-server", ARGO_SERVER, "--token-file", str(token), "--insecure-skip-tls-verify"]
        results[name] = CliRunner().invoke(main, ["submit", SHELL, *through, "-n", namespace.namespace, "--wait"])

    assert results["owner"].exit_code == 0, results["owner"].stderr
    assert f"Its page: {ARGO_SERVER}/workflows/{namespace.namespace}/shell-" in results["owner"].stdout
    assert results["stranger"].exit_code == 2
    assert "403" in results["stranger"].stderr
    assert len(namespace.items("workflows")) == 1
