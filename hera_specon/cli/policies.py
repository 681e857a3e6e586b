"""``specon policies``: what can be given to ``--policy``."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hera_specon.cli.output import write_out
from hera_specon.display.console import SafeConsole

if TYPE_CHECKING:
    from controllers.policies.registry import PolicyInfo


@click.command(short_help="List the policies, their parameters and defaults.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def policies(*, as_json: bool) -> None:
    """List the policies with what each does, where it was published, what it is made of, and its parameters.

    \b
    A policy is written NAME:PARAMETER=VALUE,...; parameters left out keep their defaults:
      specon
      specon:interval=10,alpha=0.05

    \b
    Policies that do different things can be joined with +, such as one's placement with others' shares and moves:
      procon+flowcon:interval=10+specon:interval=10
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from controllers.policies.registry import describe  # noqa: PLC0415 - `specon --help` must not wait for it

    known = describe()
    if as_json:
        write_out(json.dumps([asdict(policy) for policy in known], indent=2, default=str))
    else:
        SafeConsole().print(listing(known), highlight=False)


def listing(known: Sequence["PolicyInfo"]) -> RenderableType:
    """Return the policies as people read them."""
    return Group(*(piece for policy in known for piece in _pieces(policy)))


def _pieces(policy: "PolicyInfo") -> list[RenderableType]:
    head = Text.assemble((policy.name, "bold"), f"  {policy.summary}")
    source = Text(f"source: {policy.source}", style="dim")
    lines = [f"{kind}: {rule}" for kind, rule in policy.rules.items()]
    if policy.most_moves != 0:
        lines.append(f"most moves of a trial: {'no limit' if policy.most_moves is None else policy.most_moves}")
    rules = Text("\n".join(lines), style="dim")
    parameters = _parameters(policy) if policy.parameters else Text("no parameters", style="dim")
    return [head, *(Padding(piece, (0, 0, 0, 2)) for piece in (source, rules)), Padding(parameters, (0, 0, 1, 2))]


def _parameters(policy: "PolicyInfo") -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("parameter", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("must be", overflow="fold")
    table.add_column("meaning", overflow="fold", ratio=1)
    for parameter in policy.parameters:
        told = (parameter.name, parameter.written_default, parameter.constraint, parameter.description)
        table.add_row(*(Text(cell) for cell in told))
    return table
