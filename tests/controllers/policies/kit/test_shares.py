from controllers.core.model import TrialId
from controllers.policies.kit.shares import SharedNode
from tests.controllers.policies.policy_fakes import trial


def test_a_change_below_a_thousandth_of_a_core_is_none() -> None:
    idle = (trial("a", "n1", cpu=0.0), trial("b", "n1", cpu=0.0))
    halves = {TrialId("a"): 0.5, TrialId("b"): 0.5}
    assert SharedNode(idle, budget=2e-16).requests(halves, min_change=0.05, min_cpu=0.01) == {}
    assert SharedNode(idle, budget=0.1).requests(halves, min_change=0.05, min_cpu=0.01) == {"a": 0.05, "b": 0.05}
