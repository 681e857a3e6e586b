import re
from pathlib import Path

import pytest

from hera_specon.workflow_file import load_workflow

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "how-to" / "define-a-sweep.md"

PIPELINES = PAGE.with_name("use-a-sweep-in-a-pipeline.md")


def _examples(page: Path) -> list[str]:
    """Return the Python blocks of a page that define a whole workflow."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in blocks if "with Workflow(" in block]


EXAMPLES = [*_examples(PAGE), *_examples(PIPELINES), *_examples(REPOSITORY / "README.md")]


def test_the_pages_have_examples() -> None:
    assert len(_examples(PAGE)) == 3
    assert len(_examples(PIPELINES)) == 3
    assert len(_examples(REPOSITORY / "README.md")) == 1


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_of_the_pages_is_a_workflow_with_a_sweep(number: int, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(EXAMPLES[number], encoding="utf-8")
    assert load_workflow(path).sweeps
