"""The controller killed, and the leader lost, in the middle of a sweep."""

import os
import random
import time

import pytest

from controllers.cluster.leadership import LEASES
from controllers.worlds.argo.calls.untrusted import text, whole
from tests.cluster.sweeps import crowded_descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.controllers import ControllerProcess
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, moves, resizes

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.faults, pytest.mark.timeout(900)]

KILLS = 20
INTERVAL_S = 3
LIFE_S = 3.0 * INTERVAL_S
WORK_MS = 10
"""CPU time of a step: trials that use next to none have no growth efficiency, and are never resized."""
TAKEN_OVER_WITHIN_S = 60.0


def test_a_sweep_is_whole_however_often_the_controller_is_killed(bench: Bench) -> None:
    seed = int(os.environ.get("SPECON_TEST_SEED", random.SystemRandom().randrange(10**6)))
    print(f"SPECON_TEST_SEED={seed}")  # noqa: T201 - shown where the test fails
    chance = random.Random(seed)  # noqa: S311 - instants, not secrets
    controller = bench.controller(f"specon:interval={INTERVAL_S},alpha=0.1+flowcon:interval={INTERVAL_S}")
    began = time.monotonic()
    controller.start().wait_ready()
    start_s = time.monotonic() - began
    # Four steps a second: half as many again as all lives together should need.
    steps = round(4 * 1.5 * KILLS * (start_s + LIFE_S / 2))
    workflow = bench.submit(crowded_descent_sweep, steps=steps, work_ms=WORK_MS)
    bench.wait_all_training(workflow)
    for life in range(KILLS):
        _live(controller, chance, start_s if life % 4 == 0 else None)
        _ask_for_a_move(bench, workflow, chance)
        controller.kill()
        assert bench.phase(workflow) == "Running", "the sweep was over before it had seen all kills"
        controller.start()
    moved, resized = moves(bench, workflow), resizes(bench, workflow)
    print(f"{moved} moves, {resized} resizes by a controller that was killed {KILLS} times")  # noqa: T201 - as above
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert moved >= 3
    assert resized >= 3
    check_nothing_left(bench, workflow)


def _live(controller: ControllerProcess, chance: random.Random, start_s: float | None) -> None:
    """Let a controller live until an instant of its first ``start_s`` seconds, or of those after it is ready."""
    if start_s is None:
        controller.wait_ready()
    time.sleep(chance.uniform(0, LIFE_S if start_s is None else start_s))


def _ask_for_a_move(bench: Bench, workflow: Workflow, chance: random.Random) -> None:
    """Now and then add a move to those of the policy, up to a moment before the kill."""
    running = bench.running(workflow)
    trial = chance.choice(workflow.trials)
    if trial in running and chance.random() < 0.5:
        bench.mark_move(running[trial], bench.another_node(running[trial]))
        time.sleep(chance.uniform(0, 2))


def test_the_replica_that_stands_by_finishes_what_a_lost_leader_began(bench: Bench) -> None:
    leader, other, workflow = _led_sweep(bench)
    pod, target = bench.begin_move(workflow, "t001")
    leader.kill()
    bench.wait(lambda: _leads(other), "the other replica leads", TAKEN_OVER_WITHIN_S)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert [attempt.node for attempt in bench.pods.of(workflow.name, "t001")] == [pod.node, target]
    assert _transitions(bench) == 1
    check_nothing_left(bench, workflow)


def test_a_leader_that_was_frozen_acts_no_more_once_another_leads(bench: Bench) -> None:
    leader, other, workflow = _led_sweep(bench)
    leader.freeze()
    bench.wait(lambda: _leads(other), "the other replica leads", TAKEN_OVER_WITHIN_S)
    pod, target = bench.begin_move(workflow, "t001")
    thawed = time.time()
    leader.thaw()
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert [attempt.node for attempt in bench.pods.of(workflow.name, "t001")] == [pod.node, target]
    assert _transitions(bench) == 1
    assert leader.running
    assert [line for line in leader.lines_since(thawed) if line.get("kind") or "leading: this" in line["message"]] == []
    check_nothing_left(bench, workflow)


def _led_sweep(bench: Bench) -> tuple[ControllerProcess, ControllerProcess, Workflow]:
    """Return a replica that leads, one that stands by, and a sweep whose trials train."""
    replicas = [bench.controller(elect=True).start() for _ in range(2)]
    for replica in replicas:
        replica.wait_ready()
    workflow = bench.submit(steps=240)
    bench.wait_all_training(workflow)
    bench.wait(lambda: any(map(_leads, replicas)), "a replica leads", TAKEN_OVER_WITHIN_S)
    leader, other = sorted(replicas, key=_leads, reverse=True)
    assert not _leads(other)
    return leader, other, workflow


def _leads(replica: ControllerProcess) -> bool:
    return replica.metric("specon_is_leader") == 1.0


def _transitions(bench: Bench) -> int | None:
    lease = bench.api.get(LEASES.path(bench.namespace, "specon-controller"))
    assert text(lease, "spec", "holderIdentity")
    return whole(lease, "spec", "leaseTransitions")
