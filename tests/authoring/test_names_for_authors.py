"""What ``from hera_specon import ...`` offers is loaded on use, and looks as if it had been there all along."""

import subprocess
import sys

import pytest

import hera_specon


@pytest.mark.parametrize("name", hera_specon.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(hera_specon, name).__name__ == name


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(AttributeError, match="'hera_specon' has no attribute 'Swep'"):
        _ = hera_specon.Swep  # type: ignore[attr-defined]


def test_every_name_is_imported_by_a_star() -> None:
    program = "from hera_specon import *; print(Sweep.__name__, minimize.__name__)"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "Sweep minimize\n"
