"""How the jobs read their settings."""

import argparse
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

Settings = TypeVar("Settings")


def parsed(settings: type[Settings], argv: Sequence[str] | None) -> Settings:
    """Return ``settings`` with what ``argv`` gives, as in ``--lr=0.003``; their defaults tell the types.

    Raises:
        SystemExit: with a message that names the offending argument and its value.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for field in fields(settings):  # type: ignore[arg-type]  # a dataclass, which no type can say
        first: Any = field.default
        parser.add_argument(f"--{field.name}", type=type(first), default=first)
    return settings(**vars(parser.parse_args(argv)))
