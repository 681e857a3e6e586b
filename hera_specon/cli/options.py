"""Options that several commands share, and types that check a value as it is read."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from hera_specon.cli.output import STDOUT

POLICY_SPEC = "NAME[:PARAM=VALUE,...][+...]"
Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., None]], Callable[..., None]]


class NodeCount(click.ParamType[int]):
    """At least one node."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return ``value`` as a whole number of nodes."""
        try:
            number = int(str(value))
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{str(value)!r} is no number of nodes; give a whole number from 1 up, such as 4.", param, ctx)
        return number


class CoreCount(click.ParamType[float]):
    """More than no cores, and not endlessly many."""

    name = "cores"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return ``value`` as a number of cores."""
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            self.fail(f"{str(value)!r} is no number of cores; give one above 0, such as 0.5 or 2.", param, ctx)
        return number


class CoresOfNodes(click.ParamType["float | tuple[float, ...]"]):
    """Cores of every node alike, or of each, separated by commas."""

    name = "cores"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | tuple[float, ...]:
        """Return ``value`` as one number of cores, or as one for each node."""
        if isinstance(value, tuple):  # click converts what it has converted once more
            return value
        sizes = tuple(CoreCount().convert(size, param, ctx) for size in str(value).split(","))
        return sizes if len(sizes) > 1 else sizes[0]


class NewFile(click.ParamType[Path]):
    """A file to be written, in a folder that exists; with ``stdout``, ``-`` stands for standard output."""

    name = "file"

    def __init__(self, *, stdout: bool = False) -> None:
        self._stdout = stdout

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return ``value`` as a path that can be written to."""
        path = Path(str(value))
        if self._stdout and str(path) == STDOUT:
            return path
        if path.is_dir():
            self.fail(f"{str(path)!r} is a folder; give a file in it.", param, ctx)
        if not path.absolute().parent.is_dir():
            self.fail(f"{str(path)!r} is in a folder that does not exist; make {str(path.parent)!r} first.", param, ctx)
        return path


def assignments(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Return ``name=value`` pairs as a dict; a click callback."""
    pairs: dict[str, str] = {}
    for value in values:
        name, sign, given = value.partition("=")
        if not (name.strip() and sign):
            message = f"{value!r} is not name=value; write it like -p epochs=5."
            raise click.BadParameter(message, ctx, param)
        if name in pairs:
            message = f"{name!r} is given twice: {pairs[name]!r} and {given!r}."
            raise click.BadParameter(message, ctx, param)
        pairs[name] = given
    return pairs


def policies_option(meaning: str, **attributes: Any) -> Decorator:  # noqa: ANN401 - click's own
    """Return the option ``--policy`` that can be given several times."""
    return click.option("--policy", "policies", multiple=True, metavar=POLICY_SPEC, help=meaning, **attributes)


def state_dir_option(meaning: str) -> Decorator:
    """Return the option ``--state-dir``."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option("--state-dir", type=kind, default=Path(".specon"), show_default=True, help=meaning)


def json_file_option(command: Command) -> Command:
    """Give ``command`` the option ``--json`` that takes a file."""
    meaning = "Write the figures as JSON to this file; - for stdout."
    return click.option("--json", "json_out", type=NewFile(stdout=True), help=meaning)(command)


def parameters_option(command: Command) -> Command:
    """Give ``command`` the option ``-p`` for parameters of the workflow."""
    return click.option(
        *("-p", "--parameter", "parameters"),
        multiple=True,
        callback=assignments,
        metavar="NAME=VALUE",
        help="Value for a parameter of the workflow. Can be given several times.",
    )(command)


def offloaded_option(command: Command) -> Command:
    """Give ``command`` the option that says where Argo keeps its record of large workflows."""
    meaning = "Argo keeps its record of large workflows in a database there (nodeStatusOffLoad): more trials fit."
    return click.option("--offloaded", is_flag=True, help=meaning)(command)


def cluster_options(command: Command) -> Command:
    """Give ``command`` the options that say which cluster and namespace it is about."""
    for option in (
        click.option("--context", help="Context of the kubeconfig.  [default: the current one]"),
        click.option(
            "--kubeconfig",
            type=click.Path(exists=True, dir_okay=False),
            help="Kubeconfig file.  [default: KUBECONFIG, else ~/.kube/config, else the pod's own account]",
        ),
        click.option("-n", "--namespace", help="Namespace of the workflow.  [default: the context's own]"),
    ):
        command = option(command)
    return command
