"""The ``specon`` command."""

from hera_specon.cli.main import main

__all__ = ["main"]
