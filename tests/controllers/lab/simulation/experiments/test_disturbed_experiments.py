"""Sweeps on machines that others use too: what is drawn, what no policy can beat, and that no node stands idle."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Assessment
from controllers.core.model import Phase, Snapshot, Trial, TrialId
from controllers.lab.simulation.bounds import makespan_bound, mean_completion_bound
from controllers.lab.simulation.experiments import experiment_named
from controllers.lab.simulation.experiments.disturbed import END_S
from controllers.lab.simulation.experiments.experiment import Setup
from controllers.lab.simulation.given_cores import GivenCores
from controllers.lab.simulation.run import simulate
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import Workload

LONG_S = 16.0
"""Work of a trial from which on a move surely pays, in lone seconds."""
TWO_LOOKS_S = 22.0
WAITS = 0.1
"""Cores that a trial waits for on average, so that it clearly could use more."""
FRESH_S = 30.0


def experiment(name: str) -> Setup:
    found = experiment_named(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "at", "left"),
    [
        ("X0", 100.0, [0.4, 0.4, 0.4, 0.4]),
        ("X1", 100.0, [0.2, 0.2, 0.2, 0.2]),
        ("X1", 160.0, [0.4, 0.4, 0.4, 0.4]),
        ("X3", 0.0, [0.1, 0.4, 0.4, 0.4]),
        ("X4", 29.0, [0.4, 0.4, 0.4, 0.4]),
        ("X4", 31.0, [0.1, 0.4, 0.4, 0.4]),
    ],
)
def test_others_leave_what_the_title_says(name: str, at: float, left: Sequence[float]) -> None:
    assert [node.supplied(at) for node in experiment(name).workload(0).nodes] == pytest.approx(left)


@pytest.mark.parametrize("name", ["X2", "X5"])
def test_others_come_and_go_until_the_end(name: str) -> None:
    for node in experiment(name).workload(3).nodes:
        parts = {round(cores / node.cpu, 2) for _, cores in node.supply}
        assert min(parts) < 0.5
        assert 1.0 in parts
        assert node.supply[-1][0] > END_S - 200


@pytest.mark.parametrize("name", ["X1", "X2", "X3", "X4", "X5"])
@pytest.mark.parametrize("policy", ["default", "ahead"])
def test_no_policy_ends_before_the_bounds_that_know_what_others_take(name: str, policy: str) -> None:
    setup = experiment(name)
    workload = setup.workload(1)
    trials = simulate(Scenario(workload, setup.costs, seed=1), parse_policy(policy)).result.trials
    makespan = max(one.completed_s for one in trials) - min(one.submitted_s for one in trials)
    undisturbed = makespan_bound(experiment("X0").workload(1))
    assert undisturbed < makespan_bound(workload) <= makespan
    assert mean_completion_bound(workload) <= sum(one.completion_s for one in trials) / len(trials)


@given(st.lists(st.tuples(st.floats(0.1, 50), st.floats(0.05, 8)), max_size=8), st.floats(0.05, 8), st.floats(0, 400))
def test_when_so_much_was_given_is_when_it_was(changes: list[tuple[float, float]], most: float, at: float) -> None:
    times = [sum(seconds for seconds, _ in changes[: number + 1]) for number in range(len(changes))]
    given_cores = GivenCores(most, tuple(zip(times, (cores for _, cores in changes), strict=True)))
    assert given_cores.when(given_cores.until(at)) == pytest.approx(at, abs=1e-6)
    assert given_cores.done_at(at, 3.0) > at


class IdleBesideCrowded:
    """Watches for how long a node stands idle while two trials of another wait for its cores, each with much to do."""

    def __init__(self, workload: Workload) -> None:
        self._work = {trial.id: trial.work_s for trial in workload.trials}
        self._counts: dict[TrialId, tuple[int, float, float]] = {}
        self._waits: dict[TrialId, tuple[float, float]] = {}
        self._since: float | None = None
        self.longest_s = 0.0

    def observe(self, snapshot: Snapshot, _: Mapping[TrialId, Assessment], __: Mapping[TrialId, str]) -> None:
        """Look once."""
        for trial in snapshot.unended:
            self._count(trial)
        if self._is_wasteful(snapshot):
            self._since = snapshot.now if self._since is None else self._since
            self.longest_s = max(self.longest_s, snapshot.now - self._since)
        else:
            self._since = None

    def _count(self, trial: Trial) -> None:
        told = trial.progress
        if told is None or told.cpu_wait is None:
            return
        attempt, at, waited = self._counts.get(trial.id, (0, 0.0, 0.0))
        if attempt == trial.attempt and told.at - at >= 1:
            self._waits[trial.id] = told.at, (told.cpu_wait - waited) / (told.at - at)
        if attempt != trial.attempt or told.at - at >= 1:
            self._counts[trial.id] = trial.attempt, told.at, told.cpu_wait

    def _is_wasteful(self, snapshot: Snapshot) -> bool:
        if any(trial.phase is Phase.PENDING for trial in snapshot.unended):
            return False
        taken = {node for trial in snapshot.unended for node in (*trial.nodes, *trial.destination)}
        idle = [node for node in snapshot.nodes if node.name not in taken and node.supplied >= node.cpu]
        wait = [trial.node for trial in snapshot.unended if self._has_much_to_do_and_waits(trial, snapshot.now)]
        return bool(idle) and any(wait.count(node) > 1 for node in set(wait))

    def _has_much_to_do_and_waits(self, trial: Trial, now: float) -> bool:
        at, cores = self._waits.get(trial.id, (0.0, 0.0))
        told = trial.progress
        if trial.phase is not Phase.RUNNING or told is None or not told.steps_total or now - at > FRESH_S:
            return False
        return cores > WAITS and self._work[trial.id] * (1 - told.step / told.steps_total) > LONG_S


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["X1", "X2", "X4"])
def test_no_node_stands_idle_for_longer_than_two_looks_while_two_trials_of_another_wait(name: str, seed: int) -> None:
    setup = experiment(name)
    workload = setup.workload(seed)
    watch = IdleBesideCrowded(workload)
    simulate(Scenario(workload, setup.costs, seed=seed), parse_policy("ahead"), [watch])
    assert watch.longest_s <= TWO_LOOKS_S


def test_what_watches_for_idle_nodes_sees_those_of_the_default_scheduler() -> None:
    setup = experiment("X4")
    workload = setup.workload(0)
    watch = IdleBesideCrowded(workload)
    simulate(Scenario(workload, setup.costs, seed=0), parse_policy("default"), [watch])
    assert watch.longest_s > TWO_LOOKS_S
