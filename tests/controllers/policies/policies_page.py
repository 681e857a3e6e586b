"""The tables of docs/reference/policies.md, made of what ``specon policies`` tells.

``python -m tests.controllers.policies.policies_page`` writes them again, each below its line ``<!-- table: NAME -->``.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from controllers.policies import Guarded
from controllers.policies.kit.settings import ParameterInfo, parameters_of
from controllers.policies.registry import describe

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "policies.md"
_MARKED = re.compile(r"<!-- table: (\S+) -->\n(?:\n|\|.*\n)*")


def with_tables(page: str) -> str:
    """Return ``page`` with each marked table as it should be."""
    made = tables()
    return _MARKED.sub(lambda found: f"<!-- table: {found[1]} -->\n\n{made[found[1]]}\n\n", page)


def tables() -> dict[str, str]:
    """Return every table that the page must have, by the name in its mark."""
    known = describe()
    rows = [
        (f"`{one.name}`", one.summary, *one.rules.values(), "no limit" if one.most_moves is None else one.most_moves)
        for one in known
    ]
    overview = table(("policy", "what it does", *known[0].rules, "most moves of a trial"), rows)
    guards = [parameter for parameter in parameters_of(Guarded) if parameter.description]
    settings = {one.name: _settings(one.parameters) for one in known if one.parameters}
    return {"overview": overview, "guards": _settings(guards), **settings}


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    head = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    return "\n".join([*head, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _settings(parameters: Iterable[ParameterInfo]) -> str:
    rows = [(f"`{one.name}`", one.written_default, one.constraint, one.description) for one in parameters]
    return table(("parameter", "default", "must be", "meaning"), rows)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
