"""Several sweeps share a simulated cluster: each gets its part, nothing is lost, and nobody waits without end."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.together import SharedRun, SweepOwner, SweepView, simulate_together
from controllers.policies.arbiter import Arbiter, NamespaceTerms, Part
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, Workload
from controllers.worlds.simulated.world import SimulatedWorld

OWNERS = {"red-a": SweepOwner("red"), "red-b": SweepOwner("red"), "blue-a": SweepOwner("blue")}
REPORTS = 20


def trials(sweep: str, count: int, work_s: float, at: float = 0.0, cpu: float = 1.0) -> list[TrialSpec]:
    reports = tuple(CurvePoint(work_s * step / REPORTS, 1.0 / step) for step in range(1, REPORTS + 1))
    return [
        TrialSpec(TrialId(f"{sweep}.t{number:02}"), at, work_s, reports, cpu, Speedup.linear(cpu), sweep=sweep)
        for number in range(count)
    ]


def workload(*of: TrialSpec, nodes: int = 2, cores: float = 4.0) -> Workload:
    return Workload(of, tuple(NodeSpec(NodeName(f"n{number}"), cores) for number in range(nodes)))


LONG = workload(*trials("red-a", 12, 400.0), *trials("red-b", 12, 400.0), *trials("blue-a", 12, 400.0, at=30.0))


def run(policy: str, arbiter: Arbiter | None = None, of: Workload = LONG, **watched: object) -> SharedRun:
    scenario = Scenario(of, Costs.argo(), 1)
    owners = {name: owner for name, owner in OWNERS.items() if any(trial.sweep == name for trial in of.trials)}
    return simulate_together(scenario, parse_policy(policy), owners, arbiter, **watched)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["default", "fifo", "ahead"])
def test_all_trials_of_all_sweeps_succeed_under_any_policy(policy: str) -> None:
    shared = run(policy, Arbiter())
    assert {name: len(result.trials) for name, result in shared.results.items()} == dict.fromkeys(OWNERS, 12)
    assert all(trial.succeeded for result in shared.results.values() for trial in result.trials)


def test_the_sweep_that_comes_later_gets_its_part_only_with_an_arbiter() -> None:
    alone, shared = run("fifo"), run("fifo", Arbiter(keeps=60.0))
    assert shared.gave_back > 0
    assert shared.results["blue-a"].mean_completion_s < 0.75 * alone.results["blue-a"].mean_completion_s


def test_no_quota_is_broken_at_any_time_and_nobody_starves() -> None:
    most, had = [0.0], dict.fromkeys(OWNERS, 0)

    def watch(now: float, world: SimulatedWorld, parts: Mapping[str, Part]) -> None:
        del now, parts
        red = [r for r in world.runs if r.spec.sweep.startswith("red") and r.nodes and r.ended_at is None]
        most[0] = max(most[0], sum(r.spec.cpu for r in red))
        for one in world.runs:
            had[one.spec.sweep] += bool(one.nodes)

    arbiter = Arbiter(terms={"red": NamespaceTerms(quota_cpu=3.0)})
    for policy in ("default", "ahead"):
        run(policy, arbiter, watch=watch)
    assert 0 < most[0] <= 3.0
    assert all(had.values())


def test_two_sweeps_that_grow_have_the_spare_cores_between_them() -> None:
    # One trial each, on one node of eight cores; each can use all of it.
    alike = [
        replace(trial, speedup=Speedup.linear(8.0))
        for name in ("red-a", "blue-a")
        for trial in trials(name, 1, 100.0, at=0.0 if name == "red-a" else 20.0)
    ]
    shared = run("ahead", Arbiter(), workload(*alike, nodes=1, cores=8.0))
    first, second = (shared.results[name].trials[0] for name in ("red-a", "blue-a"))
    assert second.completed_s - 20.0 <= 1.3 * first.completed_s


@pytest.mark.slow
def test_the_same_inputs_give_the_same_run() -> None:
    assert run("ahead", Arbiter()) == run("ahead", Arbiter())


def test_a_sweep_sees_its_own_trials_and_the_nodes_less_what_others_request() -> None:
    world = SimulatedWorld(Scenario(LONG, Costs.free(), 1))
    world.advance(max(run.spec.submitted_at for run in world.runs))
    for name in ("red-a", "blue-a"):
        view = SweepView(world, name)
        others = sum(run.spec.cpu for run in world.runs if run.nodes and run.spec.sweep != name)
        assert {trial.sweep for trial in view.trials()} == {name}
        assert sum(node.cpu for node in view.nodes()) == 8.0 - others
        assert not view.finished
    assert sum(node.cpu for node in SweepView(world, "blue-a").nodes()) < 8.0
