"""The API server through kubectl."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.building import kubernetes_binary
from tests.cluster.commands import run


@dataclass(frozen=True)
class Kubectl:
    """kubectl with one kubeconfig file."""

    kubeconfig: Path

    @property
    def command(self) -> list[str]:
        """How to call it."""
        return [str(kubernetes_binary()), "kubectl", "--kubeconfig", str(self.kubeconfig)]

    def __call__(self, *arguments: str | Path, text_input: str | None = None, seconds: float = 120) -> str:
        """Run kubectl and return what it wrote."""
        return run(*self.command, *arguments, text_input=text_input, seconds=seconds)

    def get(self, *arguments: str) -> dict[str, Any]:
        """Read an object, or a list of them."""
        found: dict[str, Any] = json.loads(self("get", *arguments, "--output", "json"))
        return found

    def create(self, documents: Sequence[dict[str, Any]]) -> None:
        """Create objects, in this order."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        self("create", "--validate=false", "--filename", "-", text_input=text)
