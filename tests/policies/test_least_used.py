from controllers.core.model import NodeName, Phase, Place, TrialId
from controllers.policies import LeastUsed
from tests.policies.policy_fakes import node, run, snapshot, trial


def test_a_node_that_others_request_all_of_takes_no_trial() -> None:
    waiting = trial("a", cpu=0.0, phase=Phase.PENDING, gated=True)
    seen = snapshot(0.0, [waiting], [node("full", cpu=0.0), node("other", cpu=2.0, cpu_used=1.0)])
    (decision,) = run(LeastUsed(), [seen])
    assert [proposal.action for proposal in decision.proposals] == [Place(TrialId("a"), NodeName("other"))]
