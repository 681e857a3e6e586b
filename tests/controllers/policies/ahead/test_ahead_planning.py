"""Where ``ahead`` places trials that wait for room, and which moves it does not make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Place
from controllers.core.devices import Devices
from controllers.core.model import Node, NodeName, Phase, Trial, TrialId
from controllers.policies.ahead.planning import Weights, WorkPlan
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.lengths import EstimateSource
from controllers.policies.kit.work_left import Estimate
from tests.controllers.policies.policy_fakes import node, snapshot, trial

GPU = "example.com/gpu"
WEIGHTS = Weights(1.0, 0.0, 1.0, 5.0)


def gated(name: str, cpu: float, devices: int, at: float) -> Trial:
    asked = Devices.of({GPU: devices})
    return trial(name, cpu=cpu, phase=Phase.PENDING, gated=True, attempt=0, submitted_at=at, devices=asked)


nodes = st.lists(st.tuples(st.sampled_from([2.0, 4.0]), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=3)
there = st.tuples(st.sampled_from([0.5, 1.0]), st.integers(0, 2), st.integers(0, 2))
asking = st.tuples(st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 2), st.floats(0.0, 50.0), st.floats(1.0, 900.0))


@given(nodes, st.lists(there, max_size=4), st.lists(asking, max_size=12), st.sampled_from([0.0, 1.0]))
def test_no_room_stays_empty_while_a_trial_that_fits_there_waits(
    drawn_nodes: list[tuple[float, int, int]],
    running: list[tuple[float, int, int]],
    asked: list[tuple[float, int, float, float]],
    end_weight: float,
) -> None:
    places: list[Node] = [
        node(f"n{n}", cpu, devices=Devices.of({GPU: count}), devices_starting=Devices.of({GPU: min(count, held)}))
        for n, (cpu, count, held) in enumerate(drawn_nodes)
    ]
    live = [
        trial(f"r{n}", f"n{where % len(places)}", cpu=cpu, devices=Devices.of({GPU: count}))
        for n, (cpu, count, where) in enumerate(running)
    ]
    waits = [gated(f"w{n:02}", cpu, count, at) for n, (cpu, count, at, _) in enumerate(asked)]
    seen = snapshot(60.0, [*live, *waits], places)
    work = {one.id: 100.0 for one in live} | {one.id: asked[n][3] for n, one in enumerate(waits)}
    estimates = {one.id: Estimate(one, work[one.id], 1.0, 0.5, EstimateSource.OTHERS, 1.0) for one in seen.trials}
    plan = WorkPlan(seen, estimates, {}, Weights(1.0, 0.0, end_weight, 15.0))
    after = Capacity.of(seen)
    placed = set()
    for proposal in plan.places():
        assert isinstance(proposal.action, Place)
        assert after.allows(proposal.action)
        after.apply(proposal.action)
        placed.add(proposal.action.trial)
    for one in waits:
        assert one.id in placed or not any(after.fits(one, place.name) for place in places)


def test_a_device_that_an_attempt_holds_which_has_yet_to_run_is_given_to_nobody_else() -> None:
    two, held = Devices.of({GPU: 2}), Devices.of({GPU: 1})
    seen = snapshot(
        0.0, [gated("a", 1.0, 1, 0.0), gated("b", 1.0, 1, 1.0)], [node("n", devices=two, devices_starting=held)]
    )
    estimates = {one.id: Estimate(one, 60.0, 1.0, 0.5, EstimateSource.OTHERS, 1.0) for one in seen.trials}
    plan = WorkPlan(seen, estimates, {}, WEIGHTS)
    assert [proposal.action for proposal in plan.places()] == [Place(TrialId("a"), (NodeName("n"),))]


@pytest.mark.parametrize(("most", "moved"), [(2.0, 0), (3.0, 1)])
def test_a_trial_is_moved_only_from_where_it_keeps_others_from_cores_they_can_use(most: float, moved: int) -> None:
    long, short = trial("long", "n"), trial("short", "n")
    seen = snapshot(0.0, [long, short, trial("there", "m")], [node("n", 4.0), node("m", 4.0), node("o", 4.0)])
    work = {long.id: 2000.0, short.id: 500.0, TrialId("there"): 1900.0}
    estimates = {one.id: Estimate(one, work[one.id], most, 0.1, EstimateSource.OWN, most) for one in seen.trials}
    plan = WorkPlan(seen, estimates, {}, WEIGHTS)
    assert len(list(plan.moves([long.id, short.id]))) == moved
