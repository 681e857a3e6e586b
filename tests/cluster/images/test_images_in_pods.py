"""The images start in pods as strict as a cluster may ask for."""

from typing import Final

import pytest

from tests.cluster.any_cluster import AnyCluster
from tests.cluster.images.archives import CONTROLLER, IMAGES, TRAINER, VERSION, Image
from tests.cluster.images.build import build_images
from tests.cluster.kubectl import JsonObject, Kubectl
from tests.cluster.processes import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

OVER: Final = {"Succeeded", "Failed"}
NOT_COMPILED: Final = """
import importlib.util, pathlib, struct
for name in ("controllers", "hera_specon", "mlflow_hooks", "workflows", "mlflow"):
    for file in pathlib.Path(importlib.util.find_spec(name).origin).parent.rglob("*.py"):
        compiled = pathlib.Path(importlib.util.cache_from_source(str(file)))
        made_of = struct.unpack("<I", compiled.read_bytes()[8:12])[0] if compiled.exists() else None
        if made_of != int(file.stat().st_mtime):
            print(file)
"""


@pytest.fixture(scope="session", autouse=True)
def _images_on_all_nodes(cluster: AnyCluster) -> None:
    nodes = [node for node in cluster.kubectl.items("nodes") if node["metadata"]["name"] in cluster.node_names]
    held = [{name for image in node["status"].get("images", ()) for name in image["names"]} for node in nodes]
    missing = [image for image in IMAGES if not all(image.full_name in names for names in held)]
    for archive in build_images(missing).values():
        cluster.import_image(archive)


def pod(image: Image, *command: str) -> JsonObject:
    main = {
        "name": "main",
        "image": image.name,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "resources": {"requests": {"cpu": "100m", "memory": "300Mi"}},
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [main],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": image.stage}, "spec": spec}


def output(kubectl: Kubectl, image: Image, *command: str) -> list[str]:
    """What a command writes in a pod of its own, by lines; it has to end well."""
    kubectl.create([pod(image, *command)])

    def phase() -> str:
        return str(kubectl.get("pod", image.stage)["status"]["phase"])

    wait_until(lambda: phase() in OVER, f"the pod of {image.name} is over", 240, interval=0.5)
    written = kubectl("logs", image.stage)
    assert phase() == "Succeeded", written
    return written.splitlines()


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.stage)
def test_an_image_runs_as_a_plain_user_who_can_write_to_tmp_only(namespace: Kubectl, image: Image) -> None:
    script = "id -u; id -g; touch /opt/file 2>/dev/null || echo read-only; touch ~/file && echo writable"
    assert output(namespace, image, "sh", "-c", script) == ["65532", "65532", "read-only", "writable"]


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.stage)
def test_the_programs_of_an_image_start(namespace: Kubectl, image: Image) -> None:
    lines = output(namespace, image, "sh", "-c", "specon --version && mlflow --version")
    assert lines[0] == f"specon, version {VERSION}"
    assert lines[1].startswith("mlflow, version ")


def test_a_trainer_computes_with_pytorch(namespace: Kubectl) -> None:
    program = (
        "import torch, mlflow, mlflow_hooks; x = torch.full((2, 2), 3.0, requires_grad=True);"
        "(x @ x).sum().backward(); print(x.grad.tolist(), torch.cuda.is_available())"
    )
    assert output(namespace, TRAINER, "python", "-c", program) == ["[[12.0, 12.0], [12.0, 12.0]] False"]


def test_what_an_image_runs_is_compiled_already(namespace: Kubectl) -> None:
    assert output(namespace, CONTROLLER, "python", "-c", NOT_COMPILED) == []
