"""No signal goes where it would reach the processes of others: of a node, or of other containers."""

from typing import Any

import pytest

from controllers.core.actions import Migrate, Stop, Suspend
from controllers.core.model import NodeName, TrialId
from tests.controllers.worlds.argo.conftest import Bench, bench, fake, pods  # noqa: F401 - fixtures
from tests.controllers.worlds.argo.fake_api import Json
from tests.controllers.worlds.argo.objects import pod, steps, trial, workflow

A = TrialId(trial("a"))


def sharing(field: str, **changes: Any) -> Json:  # noqa: ANN401 - whatever a pod may have
    made = pod(on="n1", uid="sharing", **changes)
    made["spec"][field] = True
    return made


@pytest.mark.parametrize("field", ["hostPID", "shareProcessNamespace"])
@pytest.mark.parametrize("action", [Migrate(A, (NodeName("n2"),)), Suspend(A), Stop(A, "by chance")])
def test_a_trial_that_shares_its_processes_is_not_asked_to_leave(
    bench: Bench,  # noqa: F811
    field: str,
    action: Migrate | Suspend | Stop,
) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", sharing(field))
    bench.begin()
    outcome = bench.world.apply(action)
    assert (outcome.done, field in outcome.detail) == (False, True)
    bench.settle()
    assert bench.pods.commands == []


@pytest.mark.parametrize("field", ["hostPID", "shareProcessNamespace"])
def test_a_mark_on_a_pod_that_shares_its_processes_is_taken_away_again(bench: Bench, field: str) -> None:  # noqa: F811
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", sharing(field, notes={"hera-specon.io/move-to": "n2"}))
    bench.begin()
    bench.until(lambda: "hera-specon.io/move-to" not in (bench.pod() or {})["metadata"]["annotations"])
    bench.settle()
    assert bench.pods.commands == []
