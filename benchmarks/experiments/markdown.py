"""Tables in Markdown."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from controllers.lab.simulation.evaluation import MeanOverSeeds, PolicySummary
from controllers.lab.simulation.experiments.experiment import Setup
from hera_specon.display.simulated import experiment_rows, titles

BAR = "\\|"
"""A bar within a cell."""
_MARKED = re.compile(r"<!-- table: (\S+) -->\n(?:\n|\|.*\n)*")
NOTE = "<!-- Made by `python -m benchmarks.experiments`; change the code, not this page. -->"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', BAR) for cell in line)} |" for line in lines) + "\n"


def with_tables(page: str, made: Mapping[str, str]) -> str:
    """Return ``page`` with a table of ``made`` below each line ``<!-- table: NAME -->``, in place of the one there.

    Where the table of ``made`` is empty, what stands there stays.

    Raises:
        KeyError: a name in a mark is none of ``made``.
    """

    def marked(found: re.Match[str]) -> str:
        text = made[found[1]].strip()
        return f"<!-- table: {found[1]} -->\n\n{text}\n\n" if text else found[0]

    return _MARKED.sub(marked, page)


def experiment(setup: Setup, summaries: Sequence[PolicySummary]) -> str:
    """Return the table of one experiment, published figures in italics beneath ours."""
    rows = [
        [f"*{cell.strip()}*" for cell in row.cells] if row.published else list(row.cells)
        for row in experiment_rows(setup, summaries)
    ]
    return f"### {setup.id}: {setup.title}\n\n{table(titles(setup), rows)}"


def percent(found: MeanOverSeeds | None, *, signed: bool = True) -> str:
    """Return a part as a percentage with its interval."""
    if found is None:
        return ""
    reach = "" if found.half_width is None else f" ±{found.half_width * 100:.1f}"
    value = f"{found.mean * 100:.1f}".replace("-0.0", "0.0")
    sign = "+" if signed and float(value) > 0 else ""
    return f"{sign}{value}{reach} %"


def write(path: Path, title: str, introduction: str, body: Sequence[str]) -> None:
    """Write a page."""
    text = "\n".join([f"# {title}", "", NOTE, "", introduction, "", *body])
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
