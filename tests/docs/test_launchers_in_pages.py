"""The variables of launchers that trials do not inherit stand on a page as the code has them."""

import re
from pathlib import Path

from controllers.worlds.local.launchers import KEPT, OF_LAUNCHERS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "what-scripts-may-do.md"


def test_the_page_lists_the_variables_of_launchers_that_trials_do_not_inherit() -> None:
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition("### Variables of a launcher around the sweep\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ") and "`" in line]
    assert {who: tuple(re.findall(r"`([^`]+)`", names)) for who, names in rows} == OF_LAUNCHERS
    assert all(f"`{name}`" in part for name in KEPT)
