"""A sweep and what goes wrong in it. A seed gives one case, always the same; what the machine does of it is its own."""

import json
import random
from dataclasses import asdict, dataclass
from typing import Final, Literal

What = Literal[
    "kill driver",
    "interrupt driver",
    "hang up driver",
    "kill fork server",
    "kill keeper",
    "kill mlflow",
    "freeze mlflow",
    "kill trial",
    "turn clock",
    "fill disk",
]
POINTS: Final = (
    "ledger save",
    "sweep's run",
    "trial's run",
    "move",
    "suspension",
    "stop",
    "place",
    "delivery",
    "result",
    "closing",
)
"""What the driver does when a fault strikes; or it strikes after some time."""
_RARE: Final = ("sweep's run", "delivery", "result", "closing", "stop")
_OF_THE_SERVER: Final = ("kill mlflow", "freeze mlflow")
_KINDS: Final[tuple[What, ...]] = (
    *("kill driver",) * 6,
    *("interrupt driver", "hang up driver", "kill fork server", "kill keeper", "turn clock", "fill disk"),
    *("kill mlflow", "freeze mlflow", "kill trial"),
)


MANNERS: Final = ("floods", "half lines", "binary", "deaf", "forks")
"""How a hostile program behaves beside its training, see ``hash_chain_job``."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What strikes once: when the driver comes to ``point`` for the ``nth`` time, or ``after_s`` seconds.

    Attributes:
        what: who is struck, and how.
        point: one of ``POINTS``; empty where time tells.
        nth: of the visits of that point in one command, from 1.
        done: whether it strikes when that is done, not before.
        after_s: seconds after the command began, where there is no point.
        size: seconds that a clock is turned by or that a server or a disk is away.
    """

    what: What
    point: str = ""
    nth: int = 1
    done: bool = False
    after_s: float = 0.0
    size: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A sweep of ``variants`` times ``steps`` trials, and the faults that strike it.

    ``own_server`` tells that the run starts its MLflow itself. ``room_mib`` is the size of a file system of its own,
    0 for none. ``manner`` is how the programs of the first variant behave: one of ``MANNERS``, empty for well.
    """

    seed: int
    variants: int
    steps: tuple[int, ...]
    step_ms: float
    actions: int
    own_server: bool
    room_mib: int
    faults: tuple[Fault, ...]
    manner: str = ""

    def text(self) -> str:
        """Return it as JSON, so that it can be repeated."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> "Case":
        """Take it from what ``text`` gave."""
        found = json.loads(text)
        faults = tuple(Fault(**fault) for fault in found.pop("faults"))
        return cls(**{**found, "steps": tuple(found["steps"]), "faults": faults})


def draw_case(seed: int) -> Case:
    """Return the case of ``seed``."""
    chance = random.Random(seed)  # noqa: S311 - draws cases
    faults = tuple(_fault(chance) for _ in range(chance.randint(1, 3)))
    kinds = {fault.what for fault in faults}
    return Case(
        seed=seed,
        variants=chance.randint(1, 2),
        steps=tuple(sorted(chance.sample((1, 15, 40, 80, 120), chance.randint(1, 2)))),
        step_ms=chance.choice((5.0, 15.0, 30.0)),
        actions=chance.choice((0, 4, 12)),
        own_server=bool(kinds & set(_OF_THE_SERVER)) or chance.random() < 0.2,
        room_mib=chance.choice((8, 16)) if "fill disk" in kinds else 0,
        faults=faults,
        # Drawn apart, so that a seed gives the faults that it gave before there were hostile programs.
        manner=random.Random(-1 - seed).choice((*MANNERS, *[""] * len(MANNERS))),  # noqa: S311 - as above
    )


def _fault(chance: random.Random) -> Fault:
    what = chance.choice(_KINDS)
    size = chance.choice((-86_400.0, -3600.0, -30.0, 30.0, 3600.0)) if what == "turn clock" else chance.uniform(0.5, 4)
    if chance.random() < 0.3:
        return Fault(what, after_s=chance.uniform(0.5, 8.0), size=round(size, 2))
    point = chance.choice(POINTS)
    nth = 1 if point in _RARE else chance.randint(1, 6)
    return Fault(what, point, nth, done=chance.random() < 0.5, size=round(size, 2))
