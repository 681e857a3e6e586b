"""What a whole controller needs beside each hostile object: memory, threads, and time for a round of its loop.

Each is there when the controller starts, which is when it lists every object: what kills it then kills it for good.
"""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from controllers.tracking.metric_source import find_runs
from tests.controllers.tracking.test_mlflow_runs import run, server
from tests.controllers.worlds.argo.fake_api import FakeApi, Store
from tests.controllers.worlds.argo.objects import NAMESPACE, UID, node, pod, steps, workflow
from tests.hostile_tenants.hostile_objects import (
    claim,
    continuing,
    empty_lists,
    forged_pod,
    full_of_placeholders,
    hostile_workflow,
    journal,
    long_text,
    of_many_policies,
    unpacks_to,
)
from tests.hostile_tenants.steered import Needed

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
ATTACKER: Final = "attacker"
MOST_MIB: Final = 250
"""The manifests allow 512 MiB, and a controller has used 100 of them before it looks at anything."""
MOST_THREADS: Final = 60
MOST_CAMPAIGNS: Final = 100
"""Of a namespace at a time; each has one thread more."""
MOST_ROUND_S: Final = 5.0
"""A kubelet restarts the controller after a minute and more without a round."""
_MIB: Final = 2**20

Attack = Callable[[Store], object]


@contextmanager
def cluster(attack: Attack) -> Iterator[FakeApi]:
    """A cluster with a victim's trial that trains, and whatever ``attack`` puts beside it."""
    with closing(FakeApi()) as fake:
        for name in ("n1", "n2"):
            fake.store.put("nodes", node(name))
        fake.store.put("workflows", workflow(steps("a", "Running", ("n1", None))))
        fake.store.put("pods", pod(on="n1"))
        attack(fake.store)
        yield fake


def needed(attack: Attack) -> Needed:
    """Return what a controller of victim and attacker needs, in a process of its own."""
    with cluster(attack) as fake:
        command = [sys.executable, "-m", "tests.hostile_tenants.steered", str(fake.port), NAMESPACE, ATTACKER]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Needed.told(done.stdout.splitlines()[-1])


def nothing(_: Store) -> None:
    """Attack nobody."""


def packed_lists(store: Store) -> None:
    store.put("workflows", unpacks_to(ATTACKER, "lists", empty_lists()))


def packed_text(store: Store) -> None:
    store.put("workflows", unpacks_to(ATTACKER, "text", long_text()))


def placeholders(store: Store) -> None:
    store.put("workflows", full_of_placeholders(ATTACKER, "placeholders"))


def packed_journal(store: Store) -> None:
    owner = store.put("workflows", hostile_workflow(ATTACKER, "journal"))
    store.put("configmaps", journal(ATTACKER, owner["metadata"]["uid"], empty_lists()))


def forged_pods(store: Store) -> None:
    for number in range(500):
        store.put("pods", forged_pod(pod(on="n1"), ATTACKER, f"forged-{number}", nodeName="n2"))


def claims(store: Store) -> None:
    owner = store.put("workflows", hostile_workflow(ATTACKER, "claims"))
    for number in range(500):
        store.put("pods", claim(ATTACKER, f"claim-{number}", owner, "n2"))


def forged_continuation(store: Store) -> None:
    store.put("workflows", continuing(ATTACKER, "thief", UID, "sweep"))


def many_policies(store: Store) -> None:
    store.put("workflows", of_many_policies(ATTACKER, "crowd"))


@pytest.mark.parametrize(
    "attack",
    [
        nothing,
        packed_lists,
        packed_text,
        placeholders,
        packed_journal,
        forged_pods,
        claims,
        forged_continuation,
        many_policies,
    ],
)
def test_a_hostile_object_costs_the_controller_little_and_its_victims_nothing(attack: Attack) -> None:
    found = needed(attack)
    assert found.grown_mib < MOST_MIB
    assert found.threads < MOST_THREADS
    assert found.longest_round_s < MOST_ROUND_S
    assert found.steered.get(NAMESPACE) == 1


def test_many_campaigns_of_one_namespace_take_so_many_threads_and_no_more() -> None:
    def crowd(store: Store) -> None:
        for number in range(3 * MOST_CAMPAIGNS):
            store.put("workflows", hostile_workflow(ATTACKER, f"w{number:03}"))

    found = needed(crowd)
    assert found.steered.get(NAMESPACE) == 1
    assert found.steered.get(ATTACKER, 0) <= MOST_CAMPAIGNS
    assert found.threads < MOST_THREADS + MOST_CAMPAIGNS
    assert found.longest_round_s < MOST_ROUND_S
    assert found.grown_mib < MOST_MIB


def test_ten_runs_of_a_hundred_thousand_metrics_are_read_in_bounded_memory() -> None:
    crowded = run("t", loss=0.5, **{f"m{number}": 1.0 for number in range(100_000)})

    @cache
    def body(runs: int, following: int | None) -> bytes:
        more = {} if following is None else {"next_page_token": str(following)}
        return json.dumps({"runs": [crowded] * runs, **more}).encode()

    def answer(query: dict[str, Any]) -> tuple[int, bytes]:
        first = int(query.get("page_token") or 0)
        last = min(10, first + query["max_results"])
        return 200, body(last - first, last if last < 10 else None)

    # The server's own memory does not count: what it may answer is there before.
    for number in range(10):
        answer({"page_token": str(number), "max_results": 1})
    for most in (500, 62, 7):
        answer({"max_results": most})
    with server(answer) as client:
        tracemalloc.start()
        try:
            found = list(find_runs(client, ["7"], "", ["loss"]))
            peak = tracemalloc.get_traced_memory()[1] / _MIB
        finally:
            tracemalloc.stop()
    assert len(found) == 10
    assert peak < MOST_MIB
