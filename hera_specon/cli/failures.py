"""Every error ends as one message on standard error and an exit code."""

from typing import Any, ClassVar

import click

from controllers.core.errors import SpeconError, SweepInterrupted


class Failure(click.ClickException):
    """Something went wrong that is neither bad input nor an interruption."""

    exit_code: ClassVar[int] = 1


class BadInput(Failure):
    """The command or a file it names is wrong; nothing was started."""

    exit_code: ClassVar[int] = 2


class Interrupted(Failure):
    """The owner stopped it."""

    exit_code: ClassVar[int] = 130


def failure(error: BaseException) -> Failure:
    """Return what to tell people about ``error``."""
    if isinstance(error, SweepInterrupted):
        return Interrupted(str(error))
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("interrupted")
    if isinstance(error, SpeconError | OSError):
        return BadInput(str(error))
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Failure(f"specon itself failed: {told}\nSee where with: specon --debug ...")


class PoliteGroup(click.Group):
    """A command group that shows no traceback unless ``--debug`` asks for it."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if ctx.params.get("debug"):
                raise
            raise failure(error) from error
