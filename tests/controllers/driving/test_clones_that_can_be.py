"""Which sweeps can be trained as a population; the others are refused, and it is said why."""

from typing import Any, Final

import pytest

from controllers.driving.clones import why_no_clones
from controllers.policies.registry import parse_policy
from controllers.search import Dimension, NumberRange, SearchSpec

REAL: Final = Dimension(name="lr", domain=NumberRange(low=0.1, high=1.0))
WHOLE: Final = Dimension(name="width", domain=NumberRange(low=1, high=9, whole=True))
SEARCH: Final = SearchSpec(sampler="random", space=(REAL, WHOLE)).written()


def why(policy: str = "population", **changes: Any) -> str | None:  # noqa: ANN401 - of the sweep
    given: dict[str, Any] = {"search": SEARCH, "gang": False, "store": "", "printed": False, **changes}
    return why_no_clones(parse_policy(policy), **given)


def test_a_sweep_of_single_trials_with_a_search_and_hooks_can_be() -> None:
    assert why() is None
    assert why("population:change=width+ahead") is None


@pytest.mark.parametrize(
    ("policy", "changes", "words"),
    [
        ("population", {"search": ""}, "so a search has to give them"),
        ("population+ahead", {"gang": True}, "no trials of several workers"),
        ("population", {"store": "s3://bucket"}, "kept in s3://bucket"),
        ("population", {"printed": True}, "needs programs with the hooks"),
        ("population:change=rate", {}, "no hyperparameter 'rate' to change"),
        ("population", {"search": SearchSpec(sampler="random", space=(WHOLE,)).written()}, "is a real number"),
    ],
)
def test_any_other_sweep_is_refused_by_name(policy: str, changes: dict[str, Any], words: str) -> None:
    said = why(policy, **changes)
    assert said is not None
    assert said.startswith("policy 'population'")
    assert words in said


@pytest.mark.parametrize("policy", ["promote", "ahead", "default"])
def test_other_policies_take_any_sweep(policy: str) -> None:
    assert why(policy, search="", gang=True, store="s3://bucket", printed=True) is None
