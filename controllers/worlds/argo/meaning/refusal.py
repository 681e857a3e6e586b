"""Why something cannot be done, for people."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """What stands against something that somebody wants; where nothing does, None stands in its place."""

    why: str
