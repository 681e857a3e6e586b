"""A cluster to talk to, and a way to call ``specon`` with its kubeconfig."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hera_specon.cli import main
from tests.hera_specon.cli.api_server import Cluster, running, write_kubeconfig
from tests.hera_specon.cli.submitted_sweep import CLAIM, SWEEP

Specon = Callable[..., Result]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def specon_there(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Specon:
    """``specon`` by the kubeconfig of ``cluster``, whose namespace is ``lab``."""
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, cluster.url)))
    monkeypatch.delenv("ARGO_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)  # where nobody has run a sweep before
    return lambda *arguments: CliRunner().invoke(main, arguments)


@pytest.fixture
def sweep(tmp_path: Path) -> str:
    file = tmp_path / "sweep.py"
    file.write_text(SWEEP)
    return str(file)


@pytest.fixture
def claim(cluster: Cluster) -> None:
    cluster.objects[CLAIM] = {"spec": {"accessModes": ["ReadWriteMany"]}}
