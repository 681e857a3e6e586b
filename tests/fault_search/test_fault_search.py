"""Random faulty sweeps keep every invariant, and the search would notice if they did not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from controllers.core.actions import ACTION_KINDS
from controllers.core.devices import NO_DEVICES
from controllers.core.engine import Engine
from controllers.core.model import NodeName
from controllers.core.policy import Policy
from controllers.core.stop_rules import NO_RULES
from controllers.driving import assembly
from controllers.policies.arbiter import NamespaceTerms
from controllers.policies.registry import POLICIES, parse_policy
from controllers.policies.wrappers.guarded import Guarded
from controllers.worlds.simulated.autoscaler import GroupNodes
from controllers.worlds.simulated.billing import NodeMeter
from controllers.worlds.simulated.cluster import SimulatedCluster
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.faults import NodeLoss, WorldFault
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.trial_run import Stage, TrialRun
from tests.fault_search import search
from tests.fault_search.case import (
    ActionRefusal,
    Case,
    CaseError,
    ClockStep,
    ControllerCrash,
    ControllerFault,
    SlowController,
    dump_case,
    load_case,
)
from tests.fault_search.faulty_run import CaseResult, FaultyRun, Violation, run_case
from tests.fault_search.mutants import (
    ActsBeforeSaving,
    ForgetsInfinity,
    ForgetsTheEnd,
    MovesWhatMoves,
    NeverLooksAgain,
    PlacesOnce,
)
from tests.fault_search.random_cases import draw_case, every_policy
from tests.fault_search.search import smallest, try_seed

_FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))
_SEED = 77_000
_RUNS = 340
_QUICK = 102
"""Of these sweeps, those that are tried with each landing; the others take their turn."""
_ENOUGH = 400
"""Sweeps within which the search must have found what was broken on purpose."""


@pytest.mark.parametrize(
    "first",
    [
        *range(_SEED, _SEED + _QUICK, 34),
        *(pytest.param(first, marks=pytest.mark.slow) for first in range(_SEED + _QUICK, _SEED + _RUNS, 34)),
    ],
)
def test_nothing_impossible_happens_under_any_policy(first: int) -> None:
    found = [found for seed in range(first, first + 34) if (found := try_seed(seed, every_policy())[1])]
    again = "python -m tests.fault_search --runs 1 --seed"
    told = [f"{again} {one.seed}: {one.violation}\n{dump_case(one.case)}" for one in found]
    assert not told, "\n".join(told)


@pytest.mark.parametrize("file", _FOUND, ids=lambda file: file.stem)
def test_what_was_found_once_is_mended(file: Path) -> None:
    assert run_case(load_case(file)).violation is None


def test_faults_of_every_kind_strike_under_every_policy() -> None:
    policies = every_policy()
    assert set(POLICIES) < set(policies)
    cases = [draw_case(seed, policies[seed % len(policies)]) for seed in range(400)]
    drawn = [fault for case in cases for fault in case.faults]
    assert {type(fault) for fault in drawn} == {*get_args(WorldFault), *get_args(ControllerFault)}
    assert {fault.action for fault in drawn if isinstance(fault, ActionRefusal)} == {
        kind.__name__ for kind in ACTION_KINDS
    }
    assert {case.policy.split(":")[0] for case in cases} >= set(POLICIES)


def test_sweeps_of_several_owners_share_some_clusters() -> None:
    cases = [draw_case(seed, "ahead") for seed in range(400)]
    shared = [case.sharing for case in cases if case.sharing]
    assert len(shared) > 20
    assert any(sharing.quotas for sharing in shared)
    assert {len({owner.namespace for owner in sharing.owners.values()}) for sharing in shared} == {1, 2}


def test_a_seed_gives_the_same_run_again() -> None:
    case = draw_case(12, "specon+flowcon")
    assert dump_case(case) == dump_case(draw_case(12, "specon+flowcon"))
    assert run_case(case) == run_case(case)


def _engine(broken: type[Engine[Any]]) -> Callable[[pytest.MonkeyPatch], Callable[[Case], CaseResult]]:
    def breaking(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
        patch.setattr(assembly, "Engine", broken)
        return run_case

    return breaking


def _policy(broken: Policy[Any]) -> Callable[[pytest.MonkeyPatch], Callable[[Case], CaseResult]]:
    return lambda _: lambda case: FaultyRun(case, broken).run()


def _ends_that_are_forgotten(_: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    return lambda case: FaultyRun(case, assembly.guard_policy(parse_policy(case.policy)), ForgetsTheEnd).run()


def _free_failures(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    def fail(course: SimulatedCluster, run: TrialRun) -> None:
        course.halt(run)
        run.lose()
        course.go_away(run, course.costs.retry_s)

    patch.setattr(SimulatedCluster, "fail", fail)
    return run_case


def _overcommitted_devices(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    patch.setattr(NodeRun, "devices_requested", NO_DEVICES)
    return run_case


def _gangs_that_start_in_part(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    def place_worker(course: SimulatedCluster, run: TrialRun, node: NodeName) -> None:
        if run.stage is Stage.QUEUED:
            course._begin_attempt(run)
        course._put(run, node)
        course._start(run)

    patch.setattr(SimulatedCluster, "_place_worker", place_worker)
    return run_case


def _reservations_that_stay(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    patch.setattr(SimulatedCluster, "cancel_reservation", lambda *_: None)
    return run_case


def _groups_without_bound(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    patch.setattr(GroupNodes, "more", 5)
    return run_case


def _nodes_that_are_paid_for_ever(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    patch.setattr(NodeMeter, "end", lambda *_: None)
    return run_case


def _checkpoints_that_do_not_help(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    def lose(run: TrialRun) -> None:
        run.lost_work += run.work
        run.work = run.saved = run.saved_before = 0.0

    patch.setattr(TrialRun, "lose", lose)
    return run_case


def _quotas_that_nobody_heeds(patch: pytest.MonkeyPatch) -> Callable[[Case], CaseResult]:
    patch.setattr(NamespaceTerms, "why_over", lambda *_: None)
    return run_case


@pytest.mark.slow
@pytest.mark.parametrize(
    ("breaking", "invariant"),
    [
        (_engine(ActsBeforeSaving), "nothing is done before it is saved"),
        (_engine(NeverLooksAgain), "actions are checked afresh"),
        (_policy(MovesWhatMoves()), "actions fit their trials"),
        (_policy(ForgetsInfinity()), "state can be read back"),
        (_policy(Guarded(policy=PlacesOnce())), "the sweep ends"),
        (_ends_that_are_forgotten, "an ended sweep stays so"),
        (_free_failures, "every attempt has a cause"),
        (_overcommitted_devices, "no device is given twice"),
        (_gangs_that_start_in_part, "no part of a gang computes"),
        (_reservations_that_stay, "a move has one destination"),
        (_groups_without_bound, "no group has more nodes than it may"),
        (_nodes_that_are_paid_for_ever, "the bill is the sum of node seconds"),
        (_checkpoints_that_do_not_help, "a loss costs at most the last checkpoint"),
        (_quotas_that_nobody_heeds, "no start breaks a quota"),
    ],
)
def test_what_is_broken_on_purpose_is_found(
    breaking: Callable[[pytest.MonkeyPatch], Callable[[Case], CaseResult]],
    invariant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = breaking(monkeypatch)
    # Not from 0 on: where trials move again and again, its case takes minutes to show that the sweep never ends.
    cases = (draw_case(seed, "specon+flowcon") for seed in range(1, _ENOUGH))
    assert any(violation.invariant == invariant for case in cases if (violation := run(case).violation))


def test_a_clone_of_work_that_nobody_saved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrialRun, "kept", property(lambda run: run.spec.work_s))
    cases = (draw_case(seed, "population:perturbation_interval=0.2,quantile=0.5") for seed in range(1, _ENOUGH))
    found = (violation.invariant for case in cases if (violation := run_case(case).violation))
    assert next(found) == "a clone goes on with its parent's work"


@pytest.mark.slow
def test_a_failing_case_is_made_as_small_as_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _engine(NeverLooksAgain)(monkeypatch)
    # A sweep that ends stops many trials in one tick, and the room that they leave changes others without any fault.
    case, violation = next(
        (case, violation)
        for case in (replace(draw_case(seed, "specon+flowcon"), stops=NO_RULES) for seed in range(_ENOUGH))
        if (violation := run(case).violation)
    )
    small = smallest(0, case, violation).case
    assert len(small.faults) <= 2
    assert any(isinstance(fault, SlowController) for fault in small.faults)
    assert len(small.scenario.workload.trials) <= 3
    again = run(small).violation
    assert again is not None
    assert again.invariant == violation.invariant


def test_a_case_that_takes_too_long_to_make_smaller_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    case, violation = draw_case(0, "specon"), Violation("the sweep ends", "it has not", 9.0)
    endless = CaseResult(violation, events=1, ticks=1, moves=0, crashes=0)
    monkeypatch.setattr(search, "_MINIMISING_S", -1.0)
    assert smallest(0, case, violation, lambda _: endless).case == case
    monkeypatch.undo()
    assert not smallest(0, case, violation, lambda _: endless).case.faults


@pytest.mark.slow
def test_a_case_survives_its_file(tmp_path: Path) -> None:
    for seed in range(40):
        case = draw_case(seed, "specon+flowcon")
        file = tmp_path / "case.json"
        file.write_text(dump_case(case))
        assert dump_case(load_case(file)) == dump_case(case)
        assert run_case(load_case(file)) == run_case(case)


def test_a_refusal_of_no_kind_of_action_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"action must be one of .*, not 'Sing'"):
        ActionRefusal("Sing", 0.0, 1.0)


def test_a_file_without_a_case_is_refused_with_the_place_and_the_value(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    content = json.loads(dump_case(draw_case(3, "specon")))
    for change, words in (
        ({"policy": "speccon"}, r"case\.json: unknown policy 'speccon'; did you mean 'specon'"),
        ({"journal_every_s": "soon"}, r"case\.json: journal_every_s: .* not 'soon'"),
        ({"scenario": {"workload": {"trials": [], "nodes": []}}}, "at least one trial"),
    ):
        file.write_text(json.dumps(content | change))
        with pytest.raises(CaseError, match=words):
            load_case(file)


def test_a_controller_that_died_goes_on_after_a_node_was_lost_and_its_clock_has_jumped() -> None:
    case = draw_case(4711, "specon+flowcon")
    node = case.scenario.workload.nodes[0].name
    faults = (ControllerCrash(5.0, 3, 20.0), NodeLoss(node, 10.0, 5.0, 40.0), ClockStep(12.0, -3.0))
    result = run_case(Case(case.policy, case.scenario, faults))
    assert (result.violation, result.crashes) == (None, 1)
