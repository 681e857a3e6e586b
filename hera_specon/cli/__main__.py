"""Runs the command line as ``python -m hera_specon.cli``."""

from hera_specon.cli import main

main()
