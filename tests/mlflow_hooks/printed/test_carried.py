"""A Python that is copied into a folder runs there by itself, whatever else the system has."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mlflow_hooks.printed.carried import FOLDER, carry, interpreter
from tests.mlflow_hooks.printed.reading import LOSS, Readings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pods run on Linux")
SHOW = 'echo "epoch 1: loss=2"; echo "$PYTHONHOME"; tr "\\0" "\\n" < /proc/$PPID/maps | sed -n "s,.* /,/,p" | sort -u'


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("carried")
    carry(folder)
    return folder


def test_it_needs_no_file_but_its_own(carried: Path, readings: Readings) -> None:
    readings.variables |= {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "LD_LIBRARY_PATH": "/nowhere"}
    out, _ = readings.start(SHOW, LOSS, python=interpreter(str(carried))).communicate(timeout=120)
    first, home, *files = out.splitlines()
    assert (first, home) == ("epoch 1: loss=2", "/nowhere"), "the program has its own environment"
    assert len(files) > 5
    code = [file for file in files if not file.startswith((str(carried), "/usr/lib/locale", "/usr/share", "/SYSV"))]
    assert [file for file in code if not file.endswith("gconv-modules.cache")] == []
    assert readings.points() == {1: 2}


def test_it_can_do_what_the_reader_may_need(carried: Path) -> None:
    script = "import ssl, urllib.request, re2, lzma, ctypes, obstore, json, sys; print(json.dumps([sys.prefix, 1]))"
    done = subprocess.run(
        [*interpreter(str(carried)), "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout)[0] == str(carried / "python")


def test_any_user_may_run_it(carried: Path) -> None:
    modes = [path.stat().st_mode & 0o777 for path in carried.rglob("*") if path.is_file()]
    assert set(modes) <= {0o755, 0o644}


def test_pods_find_it_where_it_is_copied_to() -> None:
    assert all(word.startswith(FOLDER) for word in interpreter() if word.startswith("/"))
