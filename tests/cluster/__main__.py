"""The command line: `python -m tests.cluster --help`."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import click

from tests.cluster.building import build_all
from tests.cluster.cluster import DEFAULT_NODES, Cluster, running_cluster
from tests.cluster.commands import ClusterError
from tests.cluster.images.build import build_images
from tests.cluster.layout import NodeSpec
from tests.cluster.obstacles import obstacles
from tests.cluster.small_images import own_archives


class NodeOption(click.ParamType[tuple[float, int]]):
    """A node as CORES@CPU."""

    name = "CORES@CPU"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, int]:
        """Read it, or say what is wrong with it."""
        cores, _, cpu = value.partition("@")
        try:
            read = float(cores), int(cpu)
        except ValueError:
            self.fail(f"{value!r} is not like 0.4@1: 0.4 of a core, on the machine's core 1", param, ctx)
        if not (0 < read[0] <= 1 and read[1] in os.sched_getaffinity(0)):
            self.fail(
                f"{value!r}: cores are above 0 and at most 1, and this machine has core 0 to {os.cpu_count()} - 1"
            )
        return read


@click.group()
def main() -> None:
    """A Kubernetes cluster of one control plane and three nodes, with Argo Workflows, on this machine."""


@main.command()
@click.option(
    "--image",
    "archives",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An image archive (docker's or OCI's) that every node is to have; may be repeated.",
)
@click.option(
    "--node",
    "sizes",
    multiple=True,
    type=NodeOption(),
    help="A node with this share of a core, pinned to that core; may be repeated. Default: three of 0.4.",
)
def up(archives: tuple[Path, ...], sizes: tuple[tuple[float, int], ...]) -> None:
    """Bring the cluster up; the first time this builds it, which takes some minutes."""
    _check()
    nodes = tuple(NodeSpec(f"node-{number}", number, *size) for number, size in enumerate(sizes, 1))
    cluster = Cluster(nodes or DEFAULT_NODES, tell=_teller())
    cluster.up(archives)
    cluster.tell(f"up; export KUBECONFIG={cluster.kubeconfig}")


@main.command()
def down() -> None:
    """Take the cluster down, or what is left of it, and leave nothing behind."""
    Cluster(tell=_teller()).down()


@main.command()
def status() -> None:
    """Show the machines and their components; exit with 1 if no cluster is up."""
    cluster = _running()
    ready = cluster.kubectl.ready_nodes()
    for machine in cluster.machines:
        state = "ready" if machine.name in ready else "running" if machine.is_running else "lost"
        components = ", ".join(name if lives else f"{name} (dead)" for name, lives in machine.components.items())
        click.echo(f"{machine.name:10} {state:8} {components}")
    click.echo(f"kubeconfig {cluster.kubeconfig}\nlogs       {cluster.layout.logs}")


@main.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """Call kubectl as administrator."""
    command = [*_running().kubectl.command, *arguments]
    os.execv(command[0], command)  # noqa: S606 - kubectl is to have the terminal to itself


@main.command("import")
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_image(archive: Path) -> None:
    """Import an image ARCHIVE (docker's or OCI's) into every node."""
    _running().import_image(archive)


@main.command()
def check() -> None:
    """Say what keeps this machine from holding a cluster; exit with 1 if anything does."""
    _check()


@main.command()
def build() -> None:
    """Build the programs and the project's images, which takes minutes the first time."""
    tell = _teller()
    build_all(tell)
    build_images(tell=tell)


@main.command()
def archives() -> None:
    """Print the archives of the cluster's own images, for loading them into another cluster."""
    for archive in own_archives():
        click.echo(archive)


def _check() -> None:
    found = obstacles()
    if found:
        raise ClusterError("\n".join(("no cluster can be brought up on this machine:", *found)))


def _running() -> Cluster:
    cluster = running_cluster()
    if cluster is None:
        message = "no cluster is up: python -m tests.cluster up"
        raise ClusterError(message)
    return cluster


def _teller() -> Callable[[str], None]:
    begun = time.monotonic()
    return lambda line: click.echo(f"{time.monotonic() - begun:6.1f} s  {line}")


if __name__ == "__main__":
    try:
        main()
    except ClusterError as error:
        raise SystemExit(str(error)) from None
