"""What is done once for many attempts, and for which of them."""

import sys
from pathlib import Path

import pytest

from controllers.worlds.local.environment import compose_environment
from controllers.worlds.local.processes.preload import Plans
from controllers.worlds.local.processes.warmth import Warmth, most_wanted, warmth_of
from mlflow_hooks import contract


def test_what_the_most_attempts_want_comes_first_and_a_few_kinds_are_enough() -> None:
    kinds = [Warmth({"A": str(number)}, ("numpy",)) for number in range(5)]
    asked = [None, *kinds, kinds[3], kinds[3], kinds[1]]
    assert most_wanted(one for one in asked) == (kinds[3], kinds[1], kinds[0])


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Warmth({"A": "1", "SPECON_NODE": "n"}, ("numpy", "torch")), True),
        (Warmth({"A": "1"}, ("torch", "numpy")), False),
        (Warmth({"A": "2"}, ("numpy", "torch")), False),
        (Warmth({}, ("numpy",)), False),
        (Warmth({"A": "1"}, ()), False),
    ],
)
def test_a_server_fits_whose_steps_a_program_would_have_taken_itself(wanted: Warmth, *, fits: bool) -> None:
    assert Warmth({"A": "1"}, ("numpy",)).fits(wanted) is fits


def test_what_is_foreseen_of_a_trial_fits_its_attempt(tmp_path: Path) -> None:
    """Else every attempt would get a new process, and nobody would notice."""
    (tmp_path / "train.py").write_text("import mlflow_hooks")
    command, given = (sys.executable, "train.py"), {"PATH": "/usr/bin"}
    foreseen = warmth_of(Plans(), command, compose_environment(given, {}, {}, 0.4, 0.4), tmp_path)
    own = {contract.ENV_ATTEMPT: "a", contract.ENV_RUN_CONTEXT: "x", "MLFLOW_EXPERIMENT_NAME": "e"}
    asked = warmth_of(Plans(), command, compose_environment(given, {}, {}, 0.4, 0.4) | own, tmp_path)
    assert foreseen is not None
    assert asked is not None
    assert foreseen.steps
    assert foreseen.fits(asked)
