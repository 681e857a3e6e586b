"""Libraries that no longer ask for those they were linked with."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster.images.needed_libraries import forget_libraries

ANSWER = """
extern int gone_number; extern int gone_one(void); extern int gone_two(void); double sqrt(double);
int *address(void) { return &gone_number; }
int calls(double x) { return gone_one() + gone_two() + (int) sqrt(x); }
int answer(void) { return 42; }
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library, bound when it is loaded, that needs two others. One of these tells its version; both are gone."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: nothing was tried with a real library")
    (tmp_path / "versions").write_text("GONE_1 { global: *; };")
    compile_library(tmp_path, "gone_one", "int gone_one(void) { return 1; }", "-Wl,--version-script=versions")
    compile_library(tmp_path, "gone_two", "int gone_number = 7; int gone_two(void) { return 2; }")
    compile_library(tmp_path, "answer", ANSWER, "-L.", "-lgone_one", "-lgone_two", "-lm", "-Wl,-z,now")
    for name in ("libgone_one.so", "libgone_two.so"):
        (tmp_path / name).unlink()
    return tmp_path / "libanswer.so"


def compile_library(folder: Path, name: str, code: str, *options: str) -> None:
    (folder / f"{name}.c").write_text(code)
    command = ["cc", "-shared", "-fPIC", "-o", f"lib{name}.so", f"{name}.c", *options, f"-Wl,-soname,lib{name}.so"]
    subprocess.run(command, cwd=folder, check=True)


def test_a_library_loads_without_those_it_forgot(library: Path) -> None:
    with pytest.raises(OSError, match="libgone_one"):
        ctypes.CDLL(str(library))
    found = forget_libraries(library, re.compile(r"libgone_\w+\.so"), re.compile(rb"gone_\w+\0"))
    loaded = ctypes.CDLL(str(library))
    loaded.address.restype = ctypes.c_void_p
    assert sorted(found) == ["libgone_one.so", "libgone_two.so"]
    assert loaded.answer() == 42
    assert loaded.address() is None


def test_a_library_that_is_not_to_be_forgotten_is_still_needed(library: Path) -> None:
    assert forget_libraries(library, re.compile(r"libgone_one\.so"), re.compile(rb"gone_one\0")) == ["libgone_one.so"]
    with pytest.raises(OSError, match="libgone_two"):
        ctypes.CDLL(str(library))


def test_a_library_that_needs_none_of_them_stays_as_it_is(library: Path) -> None:
    before = library.read_bytes()
    assert not forget_libraries(library, re.compile("libabsent.so"), re.compile(rb"absent\0"))
    assert library.read_bytes() == before
