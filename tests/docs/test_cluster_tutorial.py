"""The tutorial on a cluster, command by command, on a real one: what they print is what the page says."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import pytest

from tests.cluster.any_cluster import AnyCluster
from tests.cluster.helm_namespace import helm_namespace
from tests.cluster.images.archives import VERSION
from tests.cluster.installation import MANIFESTS, forwarded
from tests.cluster.kubectl import Kubectl
from tests.docs.page_blocks import PageBlock, blocks, unprinted

# Helm may have to be built first.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "first-sweep-on-a-cluster.md"
NAMESPACE: Final = re.compile(r"\blab\b")
NAME: Final = "digits-x7k2p"
FORWARDED: Final = "http://127.0.0.1:5000"
OTHERWISE: Final = {
    "oci://ghcr.io/hera-specon/hera-specon": f"{MANIFESTS} --set image.repository=hera-specon/controller",
    f"ghcr.io/hera-specon/hera-specon/trainer:{VERSION}": f"hera-specon/trainer:{VERSION}",
}
"""What the nodes of a test cluster have in place of a released chart and its images."""
LONGEST_S: Final = 400


@dataclass
class Reader:
    """Someone who types the page's commands, with a namespace of the test's own in place of the page's.

    Attributes:
        folder: where files are saved.
        kubectl: in that namespace.
        environment: of the commands.
        stack: closes what the reader leaves open in a second terminal.
        workflow: the name that the sweep was given; the page's as long as there is none.
        mlflow: the address that the port of MLflow was forwarded to.
        missing: lines of the page that its commands did not print.
    """

    folder: Path
    kubectl: Kubectl
    environment: dict[str, str]
    stack: ExitStack
    workflow: str = NAME
    mlflow: str = FORWARDED
    missing: list[str] = field(default_factory=list)

    def follow(self, block: PageBlock) -> None:
        """Save or type what a block of the page says, and note what was to come of it and did not."""
        text = self._mine(block.text)
        if block.file:
            (self.folder / block.file).write_text(text, encoding="utf-8")
        elif "port-forward" in text:
            self.mlflow = self.stack.enter_context(forwarded(self.kubectl, "mlflow"))
        else:
            printed = self._typed(text)
            made = re.search(r"Created workflow (\S+)", printed)
            self.workflow = made[1] if made else self.workflow
            click.echo(f"$ {text}{printed}")  # shown where the test failed
            self.missing += unprinted(tuple(map(self._mine, block.printed)), printed)

    def _mine(self, text: str) -> str:
        found = NAMESPACE.sub(self.kubectl.namespace, text).replace(NAME, self.workflow).replace(FORWARDED, self.mlflow)
        for there, instead in OTHERWISE.items():
            found = found.replace(there, instead)
        return found

    def _typed(self, text: str) -> str:
        done = subprocess.run(
            ["/bin/bash", "-euc", text],
            cwd=self.folder,
            env=self.environment,
            timeout=LONGEST_S,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}"
        return done.stdout


@pytest.fixture
def reader(cluster: AnyCluster, tmp_path: Path) -> Iterator[Reader]:
    with ExitStack() as stack:
        helm, kubectl = stack.enter_context(helm_namespace(cluster, tmp_path))
        programs = tmp_path / "bin"
        programs.mkdir()
        (programs / "helm").symlink_to(helm)
        (programs / "kubectl").write_text(f'#!/bin/sh\nexec {shlex.join(cluster.kubectl.command)} "$@"\n')
        (programs / "kubectl").chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        environment["PATH"] = f"{programs}:{Path(sys.executable).parent}:{environment['PATH']}"
        environment["KUBECONFIG"] = str(cluster.kubeconfig)
        yield Reader(tmp_path, kubectl, environment, stack)


def test_a_reader_who_follows_the_page_installs_checks_submits_and_removes(reader: Reader) -> None:
    steps = blocks(PAGE)
    for block in steps:
        reader.follow(block)
    assert reader.missing == []
    assert sum(bool(block.printed) for block in steps) >= 5
    assert (reader.folder / "report.html").stat().st_size > 10_000
    assert not reader.kubectl("get", "namespace", reader.kubectl.namespace, "--ignore-not-found", "--output=name")
