"""Every error ends as one message on standard error and an exit code."""

from typing import Any

import click

from controllers.errors import SpeconError, SweepInterrupted

BAD_INPUT = 2
UNEXPECTED = 1
INTERRUPTED = 130


class Failure(click.ClickException):
    """A message for people and the exit code that goes with it."""

    exit_code: int

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def failure(error: BaseException) -> Failure:
    """Return what to tell people about ``error``."""
    if isinstance(error, SweepInterrupted):
        return Failure(str(error), INTERRUPTED)
    if isinstance(error, KeyboardInterrupt):
        return Failure("Interrupted.", INTERRUPTED)
    if isinstance(error, SpeconError | OSError):
        return Failure(str(error), BAD_INPUT)
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Failure(f"specon itself failed: {told}\nSee where with: specon --debug ...", UNEXPECTED)


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
