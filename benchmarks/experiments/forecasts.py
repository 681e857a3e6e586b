"""How often the range of a forecast held what came true."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Final

from benchmarks.experiments import markdown
from benchmarks.foreseen import PARTS, Judged, coverage, judge
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.worker_pool import worker_pool
from mlflow_hooks.system import cores_here

POLICIES: Final = ("default", "specon+flowcon", "ahead")
FORESEEN: Final = ("S1", "S4", "S5", "S6", "G1", "G3", "D1", "D2")
HARDER: Final = ("A1", "A3", "A4", "A5", "A14", "A16", "A17", "A24")
"""Sweeps whose reports tell less, or whose trials differ more."""
GANGS: Final = ("dragon+ahead", "E1")
"""Trials of several workers, which the policy makes more or fewer while they train."""


def forecasts(out: Path, seeds: Sequence[int], done: Callable[[int], None]) -> None:
    """Write the coverage and the width of forecasts at several times, under several policies."""
    names = (*FORESEEN, *HARDER)
    found: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    with worker_pool(cores_here()) as pool:
        tasks = {
            pool.submit(_judged, name, policy, seed): (policy, name)
            for policy in POLICIES
            for name in names
            for seed in seeds
        }
        tasks |= {pool.submit(_judged, GANGS[1], GANGS[0], seed): GANGS for seed in seeds}
        for future in as_completed(tasks):
            found[tasks[future]] += future.result()
            done(1)
    body = [f"## Under `{policy}`\n\n{markdown.table(_HEADER, _rows(policy, found))}" for policy in POLICIES]
    of_gangs = [[GANGS[1], *_cells(found[GANGS])]]
    body.append(f"## Trials of several workers, under `{GANGS[0]}`\n\n{markdown.table(_HEADER, of_gangs)}")
    told = (
        "Each cell says which part of the ranges held what came true; it should be 90 %. In brackets is how wide they "
        f"were: the median, as a part of the time that was really left. All of it is over {len(seeds)} seeds. The "
        "model was calibrated on none of these. *end* is the range of the sweep's end, *trials* are the ranges of the "
        "trials that ran or waited. The percentages in the header are the parts of the makespan after which the "
        "forecast was made. A cell is empty where nothing was foreseen yet. In the experiments from A1 on, less is "
        "known. A1 has lengths that differ much, and A3 has trials that wait. A4 has small nodes. In A5 trials slow "
        "each other down. In A14 and A16 no trial tells its total, and in A16 the lengths differ much as well. In A17 "
        "steps take unlike long, and CPU seconds are told late. In A24 a third of the trials stop early. "
        "[Forecasts](../reference/forecasts.md) says how they are made."
    )
    markdown.write(out / "forecasts.md", "How far forecasts can be trusted", told, body)


_HEADER: Final = ("experiment", *(f"{what}, {part:.0%}" for what in ("end", "trials") for part in PARTS))


def _judged(name: str, policy: str, seed: int) -> list[Judged]:
    return judge(EVERY_EXPERIMENT[name], policy, seed)


def _rows(policy: str, found: dict[tuple[str, str], list[Judged]]) -> list[list[str]]:
    rows: list[list[str]] = []
    for names, title in ((FORESEEN, "these"), (HARDER, "the harder ones"), ((*FORESEEN, *HARDER), "all")):
        if title != "all":
            rows += [[name, *_cells(found[policy, name])] for name in names]
        rows.append([f"**{title}**", *_cells([one for name in names for one in found[policy, name]])])
    return rows


def _cells(found: Sequence[Judged]) -> list[str]:
    ends = [[one.end for one in found if one.part == part and one.end is not None] for part in PARTS]
    trials = [[range_ for one in found if one.part == part for range_ in one.trials] for part in PARTS]
    return [_cell(ranges) for ranges in (*ends, *trials)]


def _cell(ranges: Iterable[tuple[bool, float]]) -> str:
    seen = coverage(ranges)
    return "" if seen is None else f"{seen.held:.0%} ({seen.width:.0%})"
