"""The API server through kubectl."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.building import kubernetes_binary
from tests.cluster.commands import run

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Kubectl:
    """kubectl with one kubeconfig file and, where it is given, one namespace."""

    kubeconfig: Path
    namespace: str = ""

    @property
    def command(self) -> list[str]:
        """How to call it."""
        namespace = [f"--namespace={self.namespace}"] if self.namespace else []
        return [*_program(), f"--kubeconfig={self.kubeconfig}", *namespace]

    def __call__(self, *arguments: str | Path, text_input: str | None = None, seconds: float = 120) -> str:
        """Run kubectl and return what it wrote."""
        return run(*self.command, *arguments, text_input=text_input, seconds=seconds)

    def get(self, *arguments: str) -> JsonObject:
        """Read an object, or a list of them."""
        found: JsonObject = json.loads(self("get", *arguments, "--output", "json"))
        return found

    def items(self, *arguments: str) -> list[JsonObject]:
        """Read the objects of a list."""
        found: list[JsonObject] = self.get(*arguments)["items"]
        return found

    def create(self, documents: Sequence[JsonObject]) -> None:
        """Create objects, in this order."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        self("create", "--validate=false", "--filename", "-", text_input=text)

    def ready_nodes(self) -> set[str]:
        """The names of the nodes that Kubernetes takes for ready."""
        return {
            node["metadata"]["name"]
            for node in self.items("nodes")
            for condition in node["status"].get("conditions", ())
            if condition["type"] == "Ready" and condition["status"] == "True"
        }


def _program() -> list[str]:
    """The test cluster's own program, else what a user of another cluster has."""
    built, found = kubernetes_binary(), shutil.which("kubectl")
    return [found] if found and not built.exists() else [str(built), "kubectl"]
