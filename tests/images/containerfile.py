"""The Containerfile as instructions, stage by stage."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "manifests/images/Containerfile").read_text()
IMAGES = ("controller", "trainer")


@dataclass(frozen=True)
class Stage:
    name: str
    parent: str
    instructions: Sequence[tuple[str, str]]

    def of(self, kind: str) -> list[str]:
        return [text for instruction, text in self.instructions if instruction == kind]


def instructions(text: str) -> list[tuple[str, str]]:
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", code)
    return [(line.split()[0], line.partition(" ")[2]) for line in joined.splitlines() if line.strip()]


def stages(text: str) -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    for part in re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[1:]:
        (_, head), *rest = instructions(part)
        parent, _, name = head.split()
        found[name] = Stage(name, parent, rest)
    return found


def lineage(name: str) -> list[Stage]:
    """The stages that an image is made of, from its base to itself."""
    every = stages(TEXT)
    stage = every[name]
    before = lineage(stage.parent) if stage.parent in every else []
    return [*before, stage]
