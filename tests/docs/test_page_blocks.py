"""What is read out of pages for the tests that follow them."""

from pathlib import Path

import pytest

from tests.docs.page_blocks import PageBlock, blocks, unprinted

PAGE = """# A page

Save this as `sweep.py`:

```python
x = 1
```

Not saved:

```python
y = 2
```

Type:

```console
specon submit sweep.py
```

```text
Created workflow digits
```

```console
specon status
```
"""


def test_files_and_commands_come_in_order_with_what_they_print(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert blocks(page) == [
        PageBlock("sweep.py", "x = 1\n"),
        PageBlock("", "specon submit sweep.py\n", ("Created workflow digits",)),
        PageBlock("", "specon status\n"),
    ]


@pytest.mark.parametrize("line", ["MLflow   ok   mlflow answers", "  12 ok, 1 warning", "uid ...", ""])
def test_numbers_gaps_and_omissions_of_a_page_stand_for_any(line: str) -> None:
    assert unprinted((line,), "first\n MLflow ok  mlflow answers \n9 ok, 30 warning\nuid 4f-a\n") == []


@pytest.mark.parametrize("lines", [("MLflow fault",), ("b", "a"), ("a", "a"), ("a b",), ("1 ok",)])
def test_what_was_not_printed_in_this_order_is_told(lines: tuple[str, ...]) -> None:
    assert unprinted(lines, "a\nb\nx ok\n") == [lines[-1]]
