"""The real workflow-controller runs steps, retries them, and gates the attempts that a move makes."""

import json
from typing import Final

import pytest

from tests.cluster.any_cluster import AnyCluster
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until
from tests.cluster.versions import ARGO, SHELL_IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

Steps = list[list[JsonObject]]

GATE: Final = "hera-specon.io/placement"
tells_of_the_last = pytest.mark.skipif(
    ARGO.startswith("v3.6."), reason=f"Argo {ARGO} tells the patch of a pod nothing of the attempt before"
)
GATE_AFTER_75: Final = "{{=lastRetry.exitCode == '75' ? [{name: '" + GATE + "'}] : []}}"


def workflow(name: str, templates: list[JsonObject], annotations: dict[str, str] | None = None) -> JsonObject:
    metadata = {"name": name, "annotations": annotations or {}}
    spec = {"entrypoint": "main", "templates": templates}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}


def container(command: str) -> JsonObject:
    requests = {"cpu": "20m", "memory": "16Mi"}
    return {"image": SHELL_IMAGE, "command": ["sh", "-c", command], "resources": {"requests": requests}}


def wait_for(kubectl: Kubectl, name: str, wanted: str) -> JsonObject:
    def phase() -> str:
        return str(kubectl.get("workflow", name).get("status", {}).get("phase"))

    wait_until(lambda: phase() == wanted, f"workflow {name} is {wanted}", 90, interval=0.5)
    return kubectl.get("workflow", name)


def attempts(kubectl: Kubectl, name: str) -> list[JsonObject]:
    pods = kubectl.items("pods", f"--selector=workflows.argoproj.io/workflow={name}")
    return sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def gates(pod: JsonObject) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]


def test_a_step_gets_what_the_one_before_it_wrote(namespace: Kubectl) -> None:
    written = {"parameters": [{"name": "word", "valueFrom": {"path": "/tmp/word"}}]}  # noqa: S108 - in the pod
    passed = {"parameters": [{"name": "word", "value": "{{steps.write.outputs.parameters.word}}"}]}
    steps: Steps = [
        [{"name": "write", "template": "write"}],
        [{"name": "read", "template": "read", "arguments": passed}],
    ]
    templates: list[JsonObject] = [
        {"name": "main", "steps": steps},
        {"name": "write", "container": container("echo -n hello >/tmp/word"), "outputs": written},
        {
            "name": "read",
            "inputs": {"parameters": [{"name": "word"}]},
            "container": container('test "{{inputs.parameters.word}}" = hello'),
        },
    ]
    namespace.create([workflow("two", templates)])
    wait_for(namespace, "two", "Succeeded")


def retried(command: str, gate: str = GATE_AFTER_75) -> list[JsonObject]:
    strategy = {"limit": "3", "retryPolicy": "Always", "expression": "true"}
    template = {"name": "main", "retryStrategy": strategy, "podSpecPatch": f'{{"schedulingGates": {gate}}}'}
    return [template | {"container": container(command)}]


@tells_of_the_last
def test_only_the_attempt_after_exit_75_is_gated(namespace: Kubectl) -> None:
    namespace.create([workflow("moved", retried("exit 75"))])
    wait_until(lambda: len(attempts(namespace, "moved")) == 2, "there is a second attempt", 60, interval=0.5)
    first, second = attempts(namespace, "moved")
    assert gates(first) == []
    assert gates(second) == [GATE]
    assert second["status"]["phase"] == "Pending"


@tells_of_the_last
def test_an_attempt_after_an_ordinary_failure_is_not_gated(namespace: Kubectl) -> None:
    namespace.create([workflow("failing", retried("exit {{=retries == '0' ? 1 : 0}}"))])
    wait_for(namespace, "failing", "Succeeded")
    assert [gates(pod) for pod in attempts(namespace, "failing")] == [[], []]


@tells_of_the_last
def test_a_gated_attempt_runs_where_its_opener_says(cluster: AnyCluster, namespace: Kubectl) -> None:
    node = cluster.node_names[1]
    namespace.create([workflow("placed", retried("exit {{=retries == '0' ? 75 : 0}}"))])
    wait_until(lambda: len(attempts(namespace, "placed")) == 2, "there is a second attempt", 60, interval=0.5)
    opened = {"schedulingGates": [], "nodeSelector": {"kubernetes.io/hostname": node}}
    name = attempts(namespace, "placed")[1]["metadata"]["name"]
    namespace("patch", "pod", name, "--type=merge", "--patch", json.dumps({"spec": opened}))
    wait_for(namespace, "placed", "Succeeded")
    assert namespace.get("pod", name)["spec"]["nodeName"] == node


@tells_of_the_last
@pytest.mark.parametrize(("adopted", "expected"), [(True, [GATE]), (False, [])])
def test_an_annotation_made_while_the_workflow_runs_decides_on_the_gate(
    namespace: Kubectl, *, adopted: bool, expected: list[str]
) -> None:
    # Argo makes nested maps of the dots of an annotation's name.
    known = "workflow.annotations['hera-specon']?.['io/adopted'] == workflow.uid"
    gate = GATE_AFTER_75.replace("== '75'", f"== '75' && {known}")
    namespace.create([workflow("adopted", retried("sleep 4; exit {{=retries == '0' ? 75 : 0}}", gate))])
    if adopted:
        uid = namespace.get("workflow", "adopted")["metadata"]["uid"]
        namespace("annotate", "workflow", "adopted", f"hera-specon.io/adopted={uid}")
    wait_until(lambda: len(attempts(namespace, "adopted")) == 2, "there is a second attempt", 60, interval=0.5)
    assert gates(attempts(namespace, "adopted")[1]) == expected


def test_a_workflow_goes_on_after_its_controller_was_restarted(cluster: AnyCluster, namespace: Kubectl) -> None:
    steps: Steps = [[{"name": "first", "template": "wait"}], [{"name": "second", "template": "wait"}]]
    templates: list[JsonObject] = [
        {"name": "main", "steps": steps},
        {"name": "wait", "container": container("sleep 3")},
    ]
    namespace.create([workflow("long", templates)])
    wait_until(lambda: len(attempts(namespace, "long")) == 1, "the first step's pod is there", 60)
    cluster.restart_workflow_controller()
    wait_for(namespace, "long", "Succeeded")
