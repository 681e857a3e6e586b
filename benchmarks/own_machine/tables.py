"""What the runs come to: a row for each tool of each workload, losers beside winners."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks.disturbed_machine.load import NONE
from benchmarks.experiments.markdown import table, with_tables
from benchmarks.own_machine.runs import Run
from benchmarks.own_machine.tools import OWN, TOOLS
from benchmarks.own_machine.workloads import WORKLOADS
from hera_specon.records.repeats import ratio_range

PAGE: Final = Path(__file__).parents[2] / "docs" / "experiments" / "own-machine.md"
_COMPARED: Final[Sequence[Callable[[Run], float | None]]] = (
    lambda run: run.whole,
    lambda run: run.makespan,
    lambda run: run.mean_completion,
)
_COLUMNS: Final = (
    "tool", "rounds", "whole command", "x best by hand", "makespan", "x best by hand", "mean completion",
    "x best by hand", "first step", "after the last", "peak memory", "killed", "unfinished", "CPU s of trials",
    "others", "stolen", "probe",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one workload of one size beside one load."""

    workload: str
    sizes: str
    beside: str
    runs: tuple[Run, ...]

    @property
    def title(self) -> str:
        """What was run beside what."""
        small = "" if self.sizes == "full" else f", sizes {self.sizes}"
        load = "" if self.beside == NONE else f", beside the load {self.beside!r}"
        return f"{self.workload}: {WORKLOADS[self.workload].title}{small}{load}"

    @property
    def table(self) -> str:
        """A row for each tool that ran, in Markdown."""
        return table(_COLUMNS, self.rows)

    @property
    def rows(self) -> list[list[str]]:
        """The rows of its table."""
        columns = [self._compared(measure) for measure in _COMPARED]
        return [self._row(tool, columns) for tool in TOOLS if self._of(tool)]

    def _row(self, tool: str, columns: Sequence[dict[str, list[str]]]) -> list[str]:
        runs = self._of(tool)
        return [
            TOOLS[tool].title,
            str(len(runs)),
            *(cell for column in columns for cell in column.get(tool, ["", ""])),
            _median(runs, lambda run: run.first_step, 1, " s"),
            _median(runs, lambda run: run.after_last, 1, " s"),
            _median(runs, lambda run: run.watched.peak / 1e6, 0, " MB"),
            str(sum(run.killed for run in runs)),
            str(sum(run.wanted - len(run.ends) for run in runs)),
            _median(runs, lambda run: run.cpu_s, 0),
            _median(runs, lambda run: run.watched.others, 2),
            _median(runs, lambda run: run.watched.stolen, 2),
            _median(runs, lambda run: 1000 * run.watched.probe_s, 1, " ms"),
        ]

    def _of(self, tool: str) -> list[Run]:
        return [run for run in self.runs if run.task.tool == tool]

    def _compared(self, measure: Callable[[Run], float | None]) -> dict[str, list[str]]:
        """Return by tool the median of ``measure``, and how it compares with the best tool's but ours, in pairs.

        Only runs count that came to their end: a tool that loses trials is no sooner done.
        """
        found: dict[str, dict[int, float]] = {}
        for run in self.runs:
            if run.complete and (value := measure(run)) is not None:
                found.setdefault(run.task.tool, {})[run.task.seed] = value
        medians = {tool: statistics.median(values.values()) for tool, values in found.items()}
        best = min((tool for tool in medians if tool != OWN), key=medians.__getitem__, default=None)
        told = {tool: "" if best is None else _ratio(values, found[best]) for tool, values in found.items()}
        if best is not None:
            told[best] = "best"
        return {tool: [f"{medians[tool]:.1f} s", told[tool]] for tool in found}


def grouped(runs: Iterable[Run]) -> list[Group]:
    """Return the runs by what ran beside what, in the order of workloads."""

    def kind(run: Run) -> tuple[int, str, str]:
        return list(WORKLOADS).index(run.task.workload), run.task.sizes, run.task.beside

    together = groupby(sorted(runs, key=kind), key=kind)
    names = list(WORKLOADS)
    return [Group(names[place], sizes, beside, tuple(of)) for (place, sizes, beside), of in together]


def tables(runs: Iterable[Run]) -> dict[str, str]:
    """Return every table of the page by the name in its mark; one that was not measured in full is empty."""
    full = [group for group in grouped(runs) if group.sizes == "full"]
    quiet = {group.workload: group.table for group in full if group.beside == NONE}
    disturbed = [[group.workload, group.beside, *row] for group in full if group.beside != NONE for row in group.rows]
    return {
        **{f"own-machine-{name}": quiet.get(name, "") for name in WORKLOADS},
        "own-machine-disturbed": table(("workload", "beside", *_COLUMNS), disturbed) if disturbed else "",
    }


def write_page(runs: Iterable[Run]) -> None:
    """Write the tables of the page; those that were not measured stay."""
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), tables(runs)), "utf-8")


def _ratio(values: dict[int, float], best: dict[int, float]) -> str:
    """Return the ratio over the rounds in which both ran, with the range that holds the true one 95 times of 100."""
    ratios = [values[seed] / best[seed] for seed in values if seed in best]
    if not ratios:
        return ""
    found = ratio_range(ratios)
    return f"{ratios[0]:.2f}" if found is None else f"{found.ratio:.2f} ({found.low:.2f} to {found.high:.2f})"


def _median(runs: Sequence[Run], measure: Callable[[Run], float | None], places: int, unit: str = "") -> str:
    values = [value for run in runs if (value := measure(run)) is not None]
    return f"{statistics.median(values):.{places}f}{unit}" if values else ""
