"""Where ``ahead`` starts and moves trials whose devices are unlike, or shared."""

from dataclasses import replace

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Node, Phase, Progress, Snapshot, Trial, TrialId
from controllers.policies.ahead.moving import choose_moves
from controllers.policies.ahead.placing import place_trials
from controllers.policies.ahead.planning import Weights, WorkPlan
from controllers.policies.kit.device_paces import DeviceSpeeds
from controllers.policies.kit.lengths import EstimateSource
from controllers.policies.kit.work_left import Estimate, SweepMeasurements, estimate_work, measure_sweep
from tests.controllers.policies.policy_fakes import node, snapshot, trial

GPU = Devices.of({"nvidia.com/gpu": 1})
UNLIKE = DeviceSpeeds({"fast": 1.0, "slow": 2.5}, {"fast": 3, "slow": 3}, at=1.0)


def waiting(name: str) -> Trial:
    return trial(name, phase=Phase.PENDING, gated=True, attempt=0, devices=GPU)


def nodes(each: int, replicas: int = 1) -> list[Node]:
    shared = GPU * replicas if replicas > 1 else NO_DEVICES
    return [node(name, 16.0, devices=GPU * each, device_model=name, replicas=shared) for name in ("fast", "slow")]


def plan_of(seen: Snapshot, work: dict[str, float], speeds: DeviceSpeeds, source: EstimateSource) -> WorkPlan:
    estimates = {
        TrialId(name): Estimate(seen.named[TrialId(name)], seconds, 1.0, 0.1, source, 1.0)
        for name, seconds in work.items()
    }
    return WorkPlan(seen, estimates, {}, Weights(1.0, 0.0, 1.0, 5.0, speeds))


def placed(plan: WorkPlan) -> dict[str, str]:
    return {proposal.action.trial: proposal.action.node for proposal in place_trials(plan)}  # type: ignore[union-attr, misc]


def test_the_longest_of_those_that_start_gets_the_fastest_device() -> None:
    for work in ({"a": 60.0, "b": 900.0}, {"a": 900.0, "b": 60.0}):
        seen = snapshot(60.0, [waiting("a"), waiting("b")], nodes(1))
        longest = max(work, key=lambda name: work[name])
        assert placed(plan_of(seen, work, UNLIKE, EstimateSource.PARAMETERS))[longest] == "fast"


def test_a_trial_on_a_slow_device_moves_to_a_fast_one_that_stands_idle_and_never_the_other_way() -> None:
    for here, moves in (("slow", [("t", "fast")]), ("fast", [])):
        seen = snapshot(60.0, [trial("t", here, devices=GPU)], nodes(1))
        plan = plan_of(seen, {"t": 600.0}, UNLIKE, EstimateSource.OWN)
        found = [(str(p.action.trial), str(p.action.node)) for p in choose_moves(plan, [TrialId("t")])]  # type: ignore[union-attr]
        assert found == moves


def test_trials_take_turns_on_a_shared_device_unless_sharing_it_gets_more_done() -> None:
    work = dict.fromkeys("abcdef", 100.0)
    seen = snapshot(60.0, map(waiting, work), nodes(4, replicas=4))
    for use, starting in ((None, 2), (1.0, 2), (0.5, 4), (0.3, 6)):
        speeds = DeviceSpeeds(use=use, most_seen=2.0, at=None if use is None else 1.0)
        assert len(placed(plan_of(seen, work, speeds, EstimateSource.OTHERS))) == starting


def test_while_nobody_knows_what_sharing_costs_the_trials_of_one_node_are_joined_once_they_are_known() -> None:
    running = [trial(name, where, devices=GPU) for name, where in (("a", "fast"), ("b", "slow"))]
    seen = snapshot(60.0, [*running, waiting("c"), waiting("d")], nodes(4, replicas=4))
    speeds = DeviceSpeeds(most_seen=1.0, at=1.0)
    work = dict.fromkeys("abcd", 100.0)
    assert placed(plan_of(seen, work, speeds, EstimateSource.OTHERS)) == {}
    assert set(placed(plan_of(seen, work, speeds, EstimateSource.OWN)).values()) == {"fast"}


def reported(at: float, step: int, cpu: float | None) -> Progress:
    return Progress(first=1.0, best=0.5, latest=0.5, step=step, at=at, cpu_seconds=cpu, steps_total=100)


def test_a_trial_with_a_device_is_measured_by_the_clock_whatever_cpu_it_tells() -> None:
    for spent in (None, 0.01, 2.0):
        known = SweepMeasurements()
        for at in (10, 20, 30):
            cpu = None if spent is None else spent * at
            one = replace(trial("t", "fast", devices=GPU), progress=reported(float(at), at // 10, cpu))
            seen = snapshot(float(at), [one], nodes(1))
            known = measure_sweep(seen, known)
        estimate = estimate_work(seen, known, 1.0)[TrialId("t")]
        assert estimate.known
        assert round(estimate.work / estimate.most) == 970
