"""A command group that imports a command when it is asked for: a controller is not to carry what a report needs."""

import importlib
from collections.abc import Sequence
from typing import Any

import click

from hera_specon.cli.failures import PoliteGroup


class OnDemandGroup(PoliteGroup):
    """A group of the commands ``names``, each in the module of its name beside this one."""

    def __init__(self, *arguments: Any, names: Sequence[str] = (), **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*arguments, **options)
        self._names = tuple(names)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of their help."""
        del ctx
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, None where there is none."""
        del ctx
        if cmd_name not in self._names:
            return None
        command = getattr(importlib.import_module(f"hera_specon.cli.{cmd_name}"), cmd_name)
        return command if isinstance(command, click.Command) else None
