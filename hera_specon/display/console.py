"""The console that every command prints to: what others worded steers no terminal."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from hera_specon import formatting


class SafeConsole(Console):
    """A console of rich's that lets through colours and layout of our own, and of every text only what can be printed.

    Whatever is drawn passes here last, so that a name that was not looked at before does no harm either.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of what is drawn."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
                continue
            text, style = segment.text, segment.style
            if not text.isprintable():
                text = "\n".join(map(formatting.printable, text.split("\n")))
            if style is not None and style.link:
                style = style.update_link(None)  # markup in a name would lead readers elsewhere
            yield Segment(text, style)


class OutlivingConsole(SafeConsole):
    """A console of work that goes on where nobody reads what it prints: ``specon run sweep.py | head -1``."""

    def on_broken_pipe(self) -> None:
        """Print no more to a pipe whose reader has left, and say so once, on standard error."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
        if self.stderr:
            return
        told = "Nobody reads the output any more: the sweep goes on, and its run's folder keeps the result"
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"{told}\n")
