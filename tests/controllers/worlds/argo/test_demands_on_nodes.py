"""Which nodes a trial may use: selectors, affinity, taints and tolerations, as kube-scheduler reads them."""

from typing import Any

import pytest

from controllers.core.actions import Migrate, Place
from controllers.core.model import NodeName, TrialId
from controllers.worlds.argo.reading.demands import ANY_NODE, Demands, Taint, demands_of
from controllers.worlds.argo.reading.pods import project_pod
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import Json, node, pod, steps, trial, workflow

A, B = (TrialId(trial(name)) for name in "ab")
N1, N2, N3 = (NodeName(name) for name in ("n1", "n2", "n3"))
TAINT = {"key": "pool", "value": "gpu", "effect": "NoSchedule"}
HOST = "kubernetes.io/hostname"
SPECS: dict[str, Json] = {
    "nothing": {},
    "tolerates": {"tolerations": [{"key": "pool", "operator": "Exists"}]},
    "selects": {"nodeSelector": {"zone": "east"}},
}


def labelled(item: Json, **given: str) -> Json:
    item["metadata"]["labels"] |= given
    return item


def demanding(item: Json, **spec: Any) -> Json:  # noqa: ANN401
    item["spec"] |= spec
    return item


def affinity(*terms: Json) -> Json:
    needs = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": needs}}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def allows(spec: Json, *, taints: tuple[Taint, ...] = (), **labels: str) -> bool:
    return demands_of({"spec": spec}, bound=False).allow("n1", labels, taints)


def unready(bench: Bench) -> set[str]:
    return {one.name for one in bench.world.nodes() if not one.ready}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "pool", "operator": "Exists"}, True),
        ({"key": "pool", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}, True),
        ({"key": "pool", "value": "gpu"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "pool", "value": "cpu"}, False),
        ({"key": "pool", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "pool", "operator": "Exists", "tolerationSeconds": 300}, False),
        ({"key": "pool", "operator": "Gt", "value": "gpu"}, False),
        ({}, False),
    ],
)
def test_a_taint_keeps_away_who_does_not_tolerate_it_for_good(toleration: Json, *, tolerated: bool) -> None:
    assert allows({"tolerations": [toleration]}, taints=(Taint("pool", "gpu", "NoSchedule"),)) is tolerated


@pytest.mark.parametrize(
    ("term", "holds"),
    [
        (expression("zone", "In", "east", "west"), True),
        (expression("zone", "In", "west"), False),
        (expression("zone", "NotIn", "west"), True),
        (expression("nothing", "NotIn", "west"), True),
        (expression("zone", "Exists"), True),
        (expression("nothing", "Exists"), False),
        (expression("nothing", "DoesNotExist"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("cores", "Gt", "31"), True),
        (expression("cores", "Gt", "32"), False),
        (expression("cores", "Lt", "33"), True),
        (expression("zone", "Gt", "1"), False),
        (expression("cores", "Gt", "9" * 5000), False),
        (expression("zone", "Resembles", "east"), False),
    ],
)
def test_each_operator_of_an_affinity_is_read_as_the_scheduler_reads_it(term: Json, *, holds: bool) -> None:
    assert allows(affinity({"matchExpressions": [term]}), zone="east", cores="32") is holds


def test_one_term_must_hold_with_all_its_expressions_beside_the_whole_selector() -> None:
    east, large = expression("zone", "In", "east"), expression("cores", "Gt", "8")
    both = affinity({"matchExpressions": [east, large]})
    either = affinity({"matchExpressions": [east]}, {"matchExpressions": [large]})
    assert [allows(spec, zone="east", cores="4") for spec in (both, either)] == [False, True]
    assert not allows({**either, "nodeSelector": {"disk": "ssd"}}, zone="east")
    assert allows({**either, "nodeSelector": {"disk": "ssd"}}, zone="east", disk="ssd")
    assert not allows(affinity({}), zone="east")
    assert not allows(affinity(), zone="east")
    assert allows(affinity({"matchFields": [expression("metadata.name", "In", "n1")]}))
    assert not allows(affinity({"matchFields": [expression("metadata.name", "NotIn", "n1")]}))


def test_what_a_pod_merely_prefers_counts_for_nothing() -> None:
    spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}}
    assert demands_of({"spec": spec}, bound=False) is ANY_NODE


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {f"k{n}": "v" for n in range(5000)}},
        {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(5000)]},
        affinity(*({"matchExpressions": [expression("zone", "Exists")]} for _ in range(5000))),
        affinity({"matchExpressions": [expression("zone", "In", *map(str, range(5000)))]}),
    ],
)
def test_demands_that_are_too_many_to_read_leave_no_node_and_take_no_room(spec: Json) -> None:
    found = demands_of({"spec": spec}, bound=False)
    assert not found.allow("n1", {"zone": "east"}, ())
    assert found.length == 0


@pytest.mark.parametrize("odd", [None, 1, [], "x", {"a": 1}, [1, None], {"x": ["y"]}])
def test_demands_of_any_shape_are_read_without_an_error(odd: object) -> None:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": odd}}
    for spec in (
        {"nodeSelector": odd},
        {"tolerations": odd},
        {"tolerations": [{"key": odd, "operator": odd}]},
        {"affinity": {"nodeAffinity": terms}},
        affinity({"matchExpressions": odd}),
        affinity({"matchExpressions": [{"key": odd, "operator": "In", "values": odd}]}),
    ):
        assert isinstance(demands_of({"spec": spec}, bound=False), Demands)


def test_a_tainted_node_is_one_for_those_who_tolerate_it_and_is_not_shown_where_nobody_does(bench: Bench) -> None:
    bench.put("nodes", node("n3", taints=[TAINT]))
    bench.put("pods", pod("b", gated=True))
    bench.begin()
    assert "n3" in unready(bench)
    assert bench.trial("b").may_use is None
    bench.put("pods", demanding(pod("a", gated=True), **SPECS["tolerates"]))
    bench.until(lambda: "n3" not in unready(bench))
    assert bench.trial("a").may_use is None
    assert N3 not in (bench.trial("b").may_use or {N3})
    assert bench.world.apply(Place(B, (N3,))).detail == (
        "node n3 is none for this trial: it does not tolerate the taint pool"
    )
    assert bench.world.apply(Place(A, (N3,))).done


def test_a_cordoned_or_ailing_node_takes_nobody_whatever_they_tolerate(bench: Bench) -> None:
    bench.put("nodes", node("n2", unschedulable=True))
    bench.put("nodes", node("n3", taints=[{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]))
    bench.put("pods", demanding(pod("a", gated=True), tolerations=[{"operator": "Exists"}]))
    bench.begin()
    assert {"n2", "n3"} <= unready(bench)


def test_a_trial_goes_only_where_its_selector_holds_and_its_next_attempt_too(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("nodes", labelled(node("n1"), zone="east"))
    bench.put("nodes", labelled(node("n3"), zone="east"))
    bench.put("pods", demanding(pod("a", on="n1"), **SPECS["selects"]))
    bench.begin()
    assert bench.trial("a").may_use == frozenset({N1, N3})
    assert "selector or affinity" in bench.world.apply(Migrate(A, (N2,))).detail
    assert bench.world.apply(Migrate(A, (N3,))).done
    assert bench.trial("a").may_use == frozenset({N1, N3})


def test_a_label_that_comes_to_a_node_opens_it_to_who_selects_it(bench: Bench) -> None:
    bench.put("pods", demanding(pod("a", gated=True), **SPECS["selects"]))
    bench.begin()
    assert bench.trial("a").may_use == frozenset()
    bench.put("nodes", labelled(node("n2"), zone="east"))
    bench.until(lambda: bench.trial("a").may_use == frozenset({N2}))


def test_the_host_that_the_controller_chose_is_no_demand_and_the_authors_own_is() -> None:
    placed = {"hera-specon.io/placed-on": "n1"}
    chosen = demanding(pod("a", notes=placed), nodeSelector={HOST: "host-n1", "zone": "east"})
    own = demanding(pod("a", notes=placed | {"hera-specon.io/own-host": "true"}), nodeSelector={HOST: "host-n1"})
    found = [project_pod(item) for item in (chosen, own)]
    assert [one.demands.selector for one in found if one] == [(("zone", "east"),), ((HOST, "host-n1"),)]


def test_a_gate_that_is_opened_for_an_authors_own_host_says_so_on_the_pod(bench: Bench) -> None:
    bench.put("pods", demanding(pod("a", gated=True), nodeSelector={HOST: "host-n1"}))
    bench.begin()
    assert bench.trial("a").may_use == frozenset({N1})
    assert bench.world.apply(Place(A, (N1,))).done
    bench.settle()
    bench.until(lambda: bench.trial("a").may_use == frozenset({N1}) and not bench.trial("a").gated)


def test_only_so_many_kinds_of_demands_are_worked_out_in_a_campaign(bench: Bench) -> None:
    for number in range(40):
        spec = {"nodeSelector": {HOST: "host-n1", f"k{number}": "v"}}
        bench.put("pods", demanding(pod(f"a{number}", gated=True), **spec))
    bench.begin()
    assert {bench.trial(f"a{number}").may_use for number in range(40)} == {frozenset()}
    assert len(bench.world._looks.last.choices._allowed) <= 16
