"""What ``from hera_specon import ...`` offers is loaded on use, and looks as if it had been there all along."""

import subprocess
import sys

import pytest

import hera_specon
from controllers.policies.registry import POLICIES

NAMES: list[str] = getattr(hera_specon, "__all__")  # noqa: B009 - made on use, so no type checker knows it


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(hera_specon, name).__name__ == name


def test_every_policy_is_offered() -> None:
    assert {kind.__name__ for kind in POLICIES.values()} < set(NAMES)


def test_no_policy_is_loaded_before_it_is_used() -> None:
    program = "import sys; from hera_specon import errors; print('controllers.policies' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "False\n"


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(AttributeError, match="'hera_specon' has no attribute 'Swep'"):
        _ = hera_specon.Swep  # type: ignore[attr-defined]


def test_every_name_is_imported_by_a_star() -> None:
    program = "from hera_specon import *; print(Sweep.__name__, minimize.__name__, SpeCon.__name__)"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "Sweep minimize SpeCon\n"
