"""A change touches the tests of what changed: by their own files, by imports, by folders, and by what they start."""

from pathlib import Path

import pytest

from tests.rotation.landing import ROOT
from tests.rotation.slices import read_table
from tests.rotation.touched import NEAR, OWN, PROGRAMS, STARTS, touched

_TEST = "tests/code/test_it.py"
_FILES = {
    _TEST: "def test_it():\n    from tests.code.helper import help\n    from code_.core import model\n",
    "tests/code/helper.py": "import code_.far\n",
    "tests/code/data.json": "",
    "tests/code/test_other.py": "",
    "tests/conftest.py": "",
    "tests/code/conftest.py": "import tests.shared\n",
    "tests/shared.py": "",
    "code_/core/__init__.py": "",
    "code_/core/model.py": "import code_.deep\n",
    "code_/deep.py": "",
    "code_/far.py": "",
    "code/beside.py": "",
    "manifests/values.yaml": "",
}


@pytest.mark.parametrize(
    ("changed", "near"),
    [
        (_TEST, OWN),
        ("tests/code/helper.py", OWN),
        ("tests/code/conftest.py", OWN),
        ("tests/shared.py", OWN),
        ("tests/code/data.json", OWN),
        ("code_/core/model.py", NEAR),
        ("code_/far.py", NEAR),
        ("code/beside.py", NEAR),
        ("code_/deep.py", None),
        ("tests/code/test_other.py", None),
        ("README.md", None),
    ],
)
def test_how_near_a_change_is(tmp_path: Path, changed: str, near: int | None) -> None:
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert touched(tmp_path, [changed], [_TEST]).get(_TEST) == near


def test_what_tests_start_as_a_program_touches_them() -> None:
    found = touched(ROOT, ["manifests/values.yaml"], {row.file for row in read_table()})
    assert found["tests/cluster/test_helm.py"] == STARTS


def test_a_change_of_a_module_touches_the_long_tests_that_import_it() -> None:
    found = touched(ROOT, ["tests/local_faults/case.py"], {row.file for row in read_table()})
    assert found["tests/local_faults/test_local_faults.py"] == OWN
    assert "tests/cluster/test_kueue.py" not in found


def test_all_that_stands_in_the_map_of_programs_is_there() -> None:
    named = [*PROGRAMS, *(test for tests in PROGRAMS.values() for test in tests)]
    assert [one for one in named if not (ROOT / one).exists()] == []
