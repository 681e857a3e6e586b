"""A suspended trial on a cluster that goes on from another's checkpoint: what its pods are told, what is refused."""

import json
from typing import Any, Final

from controllers.core.actions import Clone, Place
from controllers.core.model import Phase, Point, TrialId
from controllers.core.ports import OutcomeKind
from controllers.search import Dimension, NumberRange, SearchSpec
from mlflow_hooks.contract import ENV_LINEAGE
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.fake_api import Json
from tests.controllers.worlds.argo.objects import over, pod, steps, template, trial, workflow
from tests.controllers.worlds.argo.test_moves import notes, opened

A, B = TrialId(trial("a")), TrialId(trial("b"))
POINT: Final[Point] = (("lr", 0.2),)
SPACE: Final = (Dimension(name="lr", domain=NumberRange(low=0.01, high=1.0)),)
SEARCHED: Final = {
    "hera-specon.io/search": SearchSpec(sampler="random", space=SPACE).written(),
    "hera-specon.io/params": '{"lr": 0.1}',
}
OF_THE_TEMPLATE: Final = {"hera-specon.io/search": SEARCHED["hera-specon.io/search"]}
SUSPENDED: Final = {**OF_THE_TEMPLATE, "hera-specon.io/suspended": "true"}


def told(made: Json) -> Json:
    """Return a pod whose program is told from whose checkpoint its trial goes on."""
    field = {"fieldPath": "metadata.annotations['hera-specon.io/lineage']"}
    made["spec"]["containers"][1]["env"].append({"name": ENV_LINEAGE, "valueFrom": {"fieldRef": field}})
    return made


def searching(name: str) -> Json:
    """Return the template of a trial of the search."""
    made = template(name)
    made["metadata"]["annotations"] |= OF_THE_TEMPLATE
    return made


def begin(bench: Bench, **changes: Any) -> None:  # noqa: ANN401 - of the suspended pod
    """Begin with trial ``a`` suspended, and ``b`` running."""
    nodes = {**steps("a", "Running", ("n1", "75"), ("", None)), **steps("b", "Running", ("n2", None))}
    bench.put("workflows", workflow(nodes, templates=[searching("a"), searching("b")]))
    bench.put("pods", told(over(75, on="n1", notes={**SEARCHED, "hera-specon.io/rest": "suspend"})))
    bench.put("pods", told(pod(attempt=1, gated=True, notes={**SUSPENDED, **changes})))
    bench.put("pods", told(pod("b", on="n2", notes=SEARCHED)))
    bench.begin()
    bench.until(lambda: bench.trial("a").phase is Phase.SUSPENDED and bench.trial("b").steady)


def test_the_pod_that_waits_gets_the_parent_and_the_hyperparameters_and_starts_with_them(bench: Bench) -> None:
    begin(bench)
    assert bench.world.apply(Clone(A, B, point=POINT)).done
    bench.until(lambda: notes(bench, 1).get("hera-specon.io/lineage") == '["b"]')
    assert json.loads(notes(bench, 1)["hera-specon.io/params"]) == {"lr": 0.2}
    assert notes(bench, 1)["hera-specon.io/param-lr"] == "0.2"
    bench.until(lambda: bench.trial("a").lineage == (B,))
    found = bench.trial("a")
    assert (found.phase, found.waits, found.parameters) == (Phase.SUSPENDED, True, (("lr", 0.2),))
    bench.until(lambda: "Cloned" in bench.told.reasons)
    bench.until(lambda: bench.world.apply(Place(A)).done)
    bench.until(lambda: opened(bench))
    assert notes(bench, 1)["hera-specon.io/lineage"] == '["b"]'


def test_the_pod_of_the_next_attempt_is_told_too_by_a_controller_that_knows_nothing(bench: Bench) -> None:
    begin(bench, **{"hera-specon.io/lineage": '["b"]', **SEARCHED})
    bench.put("pods", told(over(1, attempt=1, on="n1", notes={"hera-specon.io/lineage": '["b"]', **SEARCHED})))
    attempts = steps("a", "Running", ("n1", "75"), ("n1", "1"), ("", None))
    bench.put("workflows", workflow(attempts, templates=[searching("a")]))
    bench.put("pods", told(pod(attempt=2, gated=True, notes=OF_THE_TEMPLATE)))
    bench.begin()
    bench.until(lambda: opened(bench, 2))
    assert notes(bench, 2)["hera-specon.io/lineage"] == '["b"]'
    assert json.loads(notes(bench, 2)["hera-specon.io/params"]) == {"lr": 0.1}


def test_what_cannot_be_is_refused_and_it_is_said_why(bench: Bench) -> None:
    begin(bench)
    assert "not suspended" in bench.world.apply(Clone(B, A)).detail
    assert "no other trial" in bench.world.apply(Clone(A, A)).detail
    assert "no other trial" in bench.world.apply(Clone(A, TrialId(trial("c")))).detail
    bench.put("pods", pod(attempt=1, gated=True, notes=SUSPENDED))
    bench.settle()
    outcome = bench.world.apply(Clone(A, B))
    assert outcome.kind is OutcomeKind.REFUSED
    assert "build the workflow again" in outcome.detail
