import pytest

from controllers.core.model import NodeName
from controllers.lab.simulation.run import simulate
from controllers.policies.comparison.default import Default
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeSpec, Workload, WorkloadError
from tests.simulated.workloads import trial


def completions(node: NodeSpec, *works: float) -> list[float]:
    trials = tuple(trial(f"t{number}", work, cpu=0.1) for number, work in enumerate(works))
    result = simulate(Scenario(Workload(trials, (node,)), Costs.free()), Default()).result
    return [of.completed_s for of in result.trials]


def test_a_trial_gets_what_others_leave_of_its_node_and_all_of_it_later() -> None:
    # 10 s of all, 20 s of a half, then all again: 10 + 10 + 30 = 50 lone seconds.
    node = NodeSpec(NodeName("n"), 1.0, supply=((10.0, 0.5), (30.0, 1.0)))
    assert completions(node, 50.0) == pytest.approx([60.0])


def test_what_is_supplied_is_shared() -> None:
    node = NodeSpec(NodeName("n"), 1.0, supply=((0.0, 0.5),))
    assert completions(node, 10.0, 10.0) == pytest.approx([40.0, 40.0])


@pytest.mark.parametrize(
    "supply", [((0.0, 0.0),), ((0.0, 1.1),), ((5.0, 0.5), (5.0, 0.4)), ((float("nan"), 0.5),), ((0.0, float("nan")),)]
)
def test_a_supply_that_can_not_be_is_refused(supply: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(WorkloadError, match="node n: supply must rise in time"):
        NodeSpec(NodeName("n"), 1.0, supply=supply)
