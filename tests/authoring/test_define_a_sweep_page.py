import re
from pathlib import Path

import pytest

from hera_specon.workflow_file import load_workflow

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "define-a-sweep.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_of_the_page_is_a_workflow_with_a_sweep(number: int, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(EXAMPLES[number], encoding="utf-8")
    assert load_workflow(path).sweeps
