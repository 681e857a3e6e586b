"""One sweep after the other: things are killed in each until it ends, and then it must be whole."""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.kills import killed_sweep
from benchmarks.kills.log import WHOLE, KilledSweep
from benchmarks.kills.victims import KilledTrial, Killer, Victim
from tests.cluster.cluster import Cluster
from tests.cluster.commands import ClusterError
from tests.cluster.sweeps.bench import Bench, Workflow, opened_bench
from tests.cluster.sweeps.pods_seen import SeenPod
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, moves, resizes
from tests.cluster.sweeps.tracking import Tracking

POLICY: Final = "specon:interval=3,alpha=0.1+flowcon:interval=3"
STEPS: Final = 500
WORK_MS: Final = 10
BETWEEN_S: Final = (2.0, 12.0)
AWAY_S: Final = (0.0, 9.0)
LONG_AWAY_S: Final = (9.0, 20.0)
"""Long enough for Kubernetes to give up the pods of a node without its kubelet: two attempts may live at once."""
_TWO_AT_A_TIME: Final = 0.25
_MOVED_BEFORE: Final = 0.5
_LONG_WITHOUT_KUBELET: Final = 0.5
"""How often two things are killed at a time, a trial is asked to move right before, and a kubelet is away for long."""
_ENDS_WITHIN_S: Final = 900.0
Tell = Callable[[str], None]


def killed_sweep_of(cluster: Cluster, tracking: Tracking, seed: int, number: int, tell: Tell) -> KilledSweep:
    """Run a sweep, kill things until it ends, and return what became of it."""
    chance = random.Random(f"{seed} {number}")  # noqa: S311 - what is killed when, no secret
    began = time.monotonic()
    kills: Counter[str] = Counter()
    moved = resized = 0
    verdict = WHOLE
    try:
        moved, resized = _survived(cluster, tracking, chance, kills, tell)
    except Exception as error:  # noqa: BLE001 - one sweep that goes wrong must not end a session of hours
        verdict = str(error) or repr(error)
    seconds = time.monotonic() - began
    return KilledSweep(seed, number, dict(kills), moved, resized, len(killed_sweep.RATES), seconds, verdict)


def _survived(
    cluster: Cluster, tracking: Tracking, chance: random.Random, kills: Counter[str], tell: Tell
) -> tuple[int, int]:
    """Run a sweep among kills, check that it is whole, and return how often its trials moved and were resized."""
    with (
        tempfile.TemporaryDirectory(dir=tracking.folder) as folder,
        opened_bench(cluster, tracking, Path(folder) / "bench") as bench,
    ):
        workflow, killer = _begun(bench, tracking, chance)
        with ExitStack() as stack:
            stack.callback(killer.revive)
            _kill_until_the_end(killer, kills, tell)
        bench.wait_for_end(workflow, _ENDS_WITHIN_S)
        moved, resized = moves(bench, workflow), resizes(bench, workflow)
        check_whole(bench, workflow)
        check_checkpoints(bench, workflow, killer.trials)
        check_nothing_left(bench, workflow)
    return moved, resized


def check_checkpoints(bench: Bench, workflow: Workflow, killed: Sequence[KilledTrial]) -> None:
    """Check that after each kill of a trial, training went on from what the trial had saved by then, or later.

    Raises:
        AssertionError: An acknowledged checkpoint was lost.
    """
    for one in killed:
        attempts = bench.pods.of(workflow.name, one.trial)
        number = [pod.uid for pod in attempts].index(one.pod_uid)
        begun = next((step for pod in attempts[number + 1 :] if (step := _begun_at(bench, pod)) is not None), None)
        if begun is not None and begun < one.saved:
            message = f"{one.trial} went on at step {begun}, though the checkpoint of step {one.saved} was acknowledged"
            raise AssertionError(message)


def _begun(bench: Bench, tracking: Tracking, chance: random.Random) -> tuple[Workflow, Killer]:
    """Start two controllers and a sweep; return it once its trials train."""
    replicas = [bench.controller(POLICY, elect=True).start() for _ in range(2)]
    for replica in replicas:
        replica.wait_ready()
    workflow = bench.submit(killed_sweep, steps=STEPS, work_ms=WORK_MS)
    bench.wait_all_training(workflow)
    return workflow, Killer(bench, workflow, tracking, replicas, chance)


def _kill_until_the_end(killer: Killer, kills: Counter[str], tell: Tell) -> None:
    chance = killer.chance
    while True:
        time.sleep(chance.uniform(*BETWEEN_S))
        if killer.bench.phase(killer.workflow) != "Running":
            return
        if chance.random() < _MOVED_BEFORE:
            killer.ask_for_a_move()
        number = 2 if chance.random() < _TWO_AT_A_TIME else 1
        # In their order in Victim, so that the API server is the first to come back.
        chosen = chance.sample(list(Victim), number)
        _kill(killer, [victim for victim in Victim if victim in chosen], kills, tell)
        killer.revive()


def _kill(killer: Killer, victims: Sequence[Victim], kills: Counter[str], tell: Tell) -> None:
    """Kill these one after the other, let some time pass without them, and let them come back."""
    chance = killer.chance
    with ExitStack() as stack:
        for victim in victims:
            if stack.enter_context(killer.gone(victim)):
                kills[victim.value] += 1
                tell(f"{kills.total():4} killed: {victim}")
            time.sleep(chance.uniform(0, 1))
        long = Victim.KUBELET in victims and chance.random() < _LONG_WITHOUT_KUBELET
        time.sleep(chance.uniform(*(LONG_AWAY_S if long else AWAY_S)))


def _begun_at(bench: Bench, pod: SeenPod) -> int | None:
    """Return the first step of an attempt as its program says; None where it came not so far, or its log is gone."""
    try:
        return bench.resumed_at(pod)
    except (KeyError, ValueError, ClusterError):
        return None
