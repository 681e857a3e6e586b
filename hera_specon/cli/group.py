"""The command group: it imports a command when it is asked for, and ends every error as one message."""

import gc
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import click

from controllers.core.errors import SpeconError, SweepInterrupted
from controllers.tracking.access import shown
from hera_specon.cli.library_warnings import library_warnings_in_short
from hera_specon.formatting import printable_lines


class CommandFailure(click.ClickException):
    """Something went wrong that is neither bad input nor an interruption."""

    exit_code: ClassVar[int] = 1

    def format_message(self) -> str:
        """Return the message without passwords and without what could steer a terminal: others may have worded it."""
        return printable_lines(shown(self.message))


class BadInput(CommandFailure):
    """The command or a file that it names is wrong; nothing was started."""

    exit_code: ClassVar[int] = 2


class Interrupted(CommandFailure):
    """The owner stopped it."""

    exit_code: ClassVar[int] = 130


def failure(error: BaseException) -> CommandFailure:
    """Return what to tell people about ``error``."""
    if isinstance(error, SweepInterrupted):
        return Interrupted(str(error))
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    if isinstance(error, SpeconError | OSError):
        return BadInput(str(error))
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return CommandFailure(f"specon itself failed: {told}\nSee where with: specon --debug ...")


class PoliteGroup(click.Group):
    """A command group that shows no traceback unless ``--debug`` asks for it."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run the command that was asked for."""
        try:
            with library_warnings_in_short():
                return super().invoke(ctx)
        except click.ClickException as error:
            # The words of the command line may be names that others gave, pasted or piped into it.
            error.message = printable_lines(error.message)  # type: ignore[misc] # others' words
            raise
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if ctx.params.get("debug"):
                raise
            raise failure(error) from error


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
        module = cmd_name.replace("-", "_")
        with importing():
            command = getattr(importlib.import_module(f"hera_specon.cli.{module}"), module)
        return command if isinstance(command, click.Command) else None


@contextmanager
def importing() -> Iterator[None]:
    """Let large libraries be imported meanwhile without looking for garbage: they leave none, and it takes a sixth."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
