"""What was killed in which sweep, and what became of it: a line of JSON each, which a later session continues."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

WHOLE: Final = "whole"
_HOUR_S: Final = 3600.0


@dataclass(frozen=True)
class KilledSweep:
    """A sweep: what was killed while it ran, how often its trials moved and were resized, and its ``verdict``.

    Attributes:
        number: from 0; with the seed of the log, all chance in it.
        kills: how often each kind of thing was killed.
        verdict: that it is whole, or what is wrong with it.
    """

    seed: int
    number: int
    kills: Mapping[str, int]
    moves: int
    resizes: int
    trials: int
    seconds: float
    verdict: str


class KillLog:
    """The file. A sweep that a session did not see to its end is not in it, and its kills do not count."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sweeps(self) -> Sequence[KilledSweep]:
        """Return all sweeps so far; half a line, as a kill of the session leaves it, is left out."""
        if not self._path.exists():
            return []
        *lines, _ = self._path.read_text(encoding="utf-8").split("\n")
        return [KilledSweep(**json.loads(line)) for line in lines]

    def append(self, sweep: KilledSweep) -> None:
        """Add a sweep."""
        found = self.sweeps()
        lines = "".join(f"{json.dumps(asdict(one))}\n" for one in (*found, sweep))
        beside = self._path.with_name(f".{self._path.name}")
        beside.write_text(lines, encoding="utf-8")
        beside.rename(self._path)


def kills_in(sweeps: Sequence[KilledSweep]) -> Counter[str]:
    """Return how often each kind of thing was killed."""
    found: Counter[str] = Counter()
    for sweep in sweeps:
        found.update(sweep.kills)
    return found


def summary(sweeps: Sequence[KilledSweep]) -> Table:
    """Return what came of all of it, for people."""
    kills = kills_in(sweeps)
    broken = [sweep for sweep in sweeps if sweep.verdict != WHOLE]
    table = Table("", "", title=f"{kills.total()} kills on a cluster, seeds {sorted({one.seed for one in sweeps})}")
    for kind, number in sorted(kills.items()):
        table.add_row(f"kills of {kind}", str(number))
    for name, value in (
        ("sweeps", len(sweeps)),
        ("trials", sum(sweep.trials for sweep in sweeps)),
        ("moves", sum(sweep.moves for sweep in sweeps)),
        ("resizes", sum(sweep.resizes for sweep in sweeps)),
        ("hours", f"{sum(sweep.seconds for sweep in sweeps) / _HOUR_S:.1f}"),
        ("sweeps with something lost, doubled or torn", len(broken)),
    ):
        table.add_row(name, str(value))
    for sweep in broken:
        first = sweep.verdict.partition("\n")[0]
        table.add_row(f"sweep {sweep.number} of seed {sweep.seed}", first[:200])
    return table
