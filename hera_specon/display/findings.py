"""The findings of ``specon doctor``, drawn with rich."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hera_specon.doctor.findings import Finding, Verdict
from hera_specon.formatting import one_line

_STYLES: Final = {
    Verdict.OK: "green",
    Verdict.WARNING: "yellow",
    Verdict.FAULT: "bold red",
    Verdict.UNKNOWN: "dim",
}
_MOST: Final = 1000
"""Characters of a cell: others may have worded it."""


def findings_table(findings: Sequence[Finding]) -> RenderableType:
    """Return a row for each check; below what was found stand what to do and the command for it."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was found, and what to do", overflow="fold", ratio=1)
    for finding in findings:
        table.add_row(
            Text(one_line(finding.subject)[:_MOST]),
            Text(finding.verdict.value, style=_STYLES[finding.verdict]),
            _told(finding),
        )
    return table


def _told(finding: Finding) -> Text:
    told = Text(one_line(finding.found)[:_MOST])
    if finding.verdict is not Verdict.OK:
        told.append(f"\n{one_line(finding.advice)[:_MOST]}", style="italic")
    if finding.command:
        told.append(f"\n  {one_line(finding.command)[:_MOST]}", style="cyan")
    return told


def counted(findings: Sequence[Finding]) -> str:
    """Return how many checks came out how, such as ``12 ok, 1 warning, 2 faults``."""
    counts = Counter(finding.verdict for finding in findings)
    words = {Verdict.WARNING: ("warning", "warnings"), Verdict.FAULT: ("fault", "faults")}
    told = []
    for verdict in (Verdict.OK, Verdict.WARNING, Verdict.FAULT, Verdict.UNKNOWN):
        if count := counts[verdict]:
            one, many = words.get(verdict, (verdict.value, verdict.value))
            told.append(f"{count} {one if count == 1 else many}")
    return ", ".join(told)
