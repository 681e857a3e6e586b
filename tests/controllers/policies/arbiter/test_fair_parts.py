"""Who may use how much: by weight, namespaces first, by what is scarce, within quotas, and with nothing left over."""

import pytest

from controllers.core.devices import Devices
from controllers.core.model import Node, NodeKind, NodeName
from controllers.policies.arbiter import Amount, ArbiterState, Claimant, NamespaceTerms
from tests.controllers.policies.arbiter.sharing_sweeps import AT_ONCE, many, nodes, parts_of, runs, sweep, waits

GPU = "nvidia.com/gpu"


def starts(*, red: float = 1.0, blue: float = 1.0) -> tuple[int, int]:
    terms = {"red": NamespaceTerms(weight=red), "blue": NamespaceTerms(weight=blue)}
    parts = parts_of([sweep("red", *many("r", 30)), sweep("blue", *many("b", 30))], nodes(4, 3.0), terms=terms)
    return len(parts["red"].starts), len(parts["blue"].starts)


def test_two_namespaces_that_want_more_than_there_is_get_the_same() -> None:
    assert starts() == (6, 6)


def test_twice_the_weight_gets_twice_as_much() -> None:
    assert starts(red=2.0) == (8, 4)
    assert starts(blue=3.0) == (3, 9)


def test_two_sweeps_of_one_namespace_share_its_part() -> None:
    sweeps = [
        sweep("a", *many("a", 30), namespace="red"),
        sweep("b", *many("b", 30), namespace="red", weight=2.0),
        sweep("c", *many("c", 30), namespace="blue"),
    ]
    parts = parts_of(sweeps, nodes(4, 3.0))
    assert {name: len(part.starts) for name, part in parts.items()} == {"a": 2, "b": 4, "c": 6}


def test_what_one_cannot_use_goes_to_the_others() -> None:
    parts = parts_of([sweep("red", *many("r", 2)), sweep("blue", *many("b", 30))], nodes(4, 3.0))
    assert {name: len(part.starts) for name, part in parts.items()} == {"red": 2, "blue": 10}


def test_shares_are_those_of_what_a_sweep_wants_the_greatest_part_of() -> None:
    # The example of the DRF paper: 9 cores and 18 GB; A asks for 1 core and 4 GB, B for 3 cores and 1 GB.
    there = [Node(NodeName("n"), 9.0, 18.0)]
    a = [Claimant(waits(f"a{n}").id, Amount(1.0, 4.0)) for n in range(9)]
    b = [Claimant(waits(f"b{n}").id, Amount(3.0, 1.0)) for n in range(9)]
    parts = parts_of([sweep("A", *a), sweep("B", *b)], there)
    assert (len(parts["A"].starts), len(parts["B"].starts)) == (3, 2)


@pytest.mark.parametrize(("quota", "at_the_scheduler"), [(None, {"a", "b", "big"}), (1.5, set()), (2.5, {"a"})])
def test_a_sweep_that_is_alone_has_no_more_pods_wait_at_the_scheduler_than_its_quota_allows(
    quota: float | None, at_the_scheduler: set[str]
) -> None:
    # What runs leaves a quarter of a core, so no node has room for any that waits, and no quota was looked at.
    # All were submitted at once, so their names decide, in whatever order they are given.
    there = (runs("r", "n0", 0.75), waits("big", 1.0), waits("a", 1.0), waits("b", 1.0))
    parts = parts_of([sweep("red", *there)], nodes(1, 1.0), terms={"red": NamespaceTerms(quota_cpu=quota)})
    assert parts["red"].starts == set()
    assert {trial.id for trial in there[1:]} - parts["red"].held_back == at_the_scheduler


@pytest.mark.parametrize(("least", "starts"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_gang_that_no_node_can_hold_whole_starts_with_as_many_workers_as_fit(least: int, *, starts: bool) -> None:
    gang = waits("a", cpu=2.0, workers=4, least=least)
    parts = parts_of([sweep("A", gang, places=False), sweep("B", waits("b"), places=False)], nodes(1, 5.0))
    assert parts["A"].starts == ({gang.id} if starts else set())
    assert parts["A"].held_back == (set() if starts else {gang.id})
    assert parts["A"].entitled.cpu == (4.0 if starts else 0.0)


def test_devices_count_as_the_greatest_part_too() -> None:
    there = [Node(NodeName("n"), 100.0, devices=Devices.of({GPU: 4}))]
    trials = {
        name: [Claimant(waits(f"{name}{n}").id, Amount(1.0, 0.0, Devices.of({GPU: 1}))) for n in range(9)]
        for name in ("a", "b")
    }
    parts = parts_of([sweep(name, *of) for name, of in trials.items()], there)
    assert [len(parts[name].starts) for name in ("a", "b")] == [2, 2]


def test_a_higher_priority_comes_first_among_namespaces_and_within_one() -> None:
    terms = {"red": NamespaceTerms(priority=1)}
    parts = parts_of([sweep("red", *many("r", 9)), sweep("blue", *many("b", 30))], nodes(4, 3.0), terms=terms)
    assert (len(parts["red"].starts), len(parts["blue"].starts)) == (9, 3)
    within = [
        sweep("a", *many("a", 30), namespace="red"),
        sweep("b", *many("b", 4), namespace="red", priority=100),
        sweep("c", *many("c", 30), namespace="blue"),
    ]
    parts = parts_of(within, nodes(4, 3.0))
    assert {name: len(part.starts) for name, part in parts.items()} == {"a": 2, "b": 4, "c": 6}


def test_a_tenants_own_weight_and_priority_take_nothing_from_another_namespace() -> None:
    greedy = sweep("red", *many("r", 30), weight=100.0, priority=100)
    parts = parts_of([greedy, sweep("blue", *many("b", 30))], nodes(4, 3.0))
    assert (len(parts["red"].starts), len(parts["blue"].starts)) == (6, 6)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (NamespaceTerms(quota_cpu=3.0), "quota of 3 cores"),
        (NamespaceTerms(quota_memory=3.0), "quota of 3 bytes of memory"),
        (NamespaceTerms(quota_devices=((GPU, 3),)), f"quota of 3 {GPU}"),
    ],
)
def test_no_quota_is_broken_and_the_rest_goes_to_others(terms: NamespaceTerms, words: str) -> None:
    there = [Node(NodeName("n"), 12.0, 12.0, devices=Devices.of({GPU: 12}))]
    each = Amount(1.0, 1.0, Devices.of({GPU: 1}))
    trials = {name: [Claimant(waits(f"{name}{n:02}").id, each) for n in range(30)] for name in ("red", "blue")}
    parts = parts_of([sweep(name, *of) for name, of in trials.items()], there, terms={"red": terms})
    assert (len(parts["red"].starts), len(parts["blue"].starts)) == (3, 9)
    assert words in parts["red"].reason
    assert len(parts["red"].held_back) == 27


def test_the_terms_of_every_other_namespace_hold_where_it_is_not_named() -> None:
    parts = parts_of([sweep("red", *many("r", 9))], nodes(4), terms={"*": NamespaceTerms(quota_cpu=2.0)})
    assert len(parts["red"].starts) == 2


def test_a_sweep_alone_may_use_everything_and_nothing_is_kept_from_it() -> None:
    parts = parts_of([sweep("red", runs("r0", "n0", most_cpu=4.0), *many("s", 2), grows=True)], nodes(2))
    assert not any(parts["red"].meant_for_others(NodeName(f"n{n}")).cpu for n in range(2))
    assert not parts["red"].held_back
    assert not parts["red"].gives_back


def test_room_that_is_meant_for_others_is_not_shown_and_ones_own_is() -> None:
    busy = sweep("red", *(runs(f"r{n}", f"n{n % 2}") for n in range(6)), *many("w", 9))
    parts = parts_of([busy, sweep("blue", *many("b", 9))], nodes(2))
    blue = sum(parts["blue"].own[name].cpu for name in parts["blue"].own)
    assert blue == len(parts["blue"].starts) == 4
    assert sum(parts["red"].meant_for_others(NodeName(f"n{n}")).cpu for n in range(2)) == 4
    assert sum(parts["blue"].meant_for_others(NodeName(f"n{n}")).cpu for n in range(2)) == 0


def test_a_policy_that_names_no_nodes_starts_only_what_has_its_turn() -> None:
    sweeps = [sweep("red", *many("r", 9), places=False), sweep("blue", *many("b", 9))]
    parts = parts_of(sweeps, nodes(1))
    assert len(parts["red"].starts) == 2
    assert len(parts["red"].held_back) == 7
    assert not parts["blue"].held_back


def test_a_pod_goes_to_the_scheduler_only_once_its_room_is_free() -> None:
    leaving = [runs(f"r{n}", "n0", steady=False, leaving=True) for n in range(2)]
    sweeps = [
        sweep("red", *leaving, *(runs(f"s{n}", "n0") for n in range(2))),
        sweep("blue", *many("b", 9), places=False),
    ]
    parts = parts_of(sweeps, nodes(1))
    assert len(parts["blue"].starts) == 2
    assert len(parts["blue"].held_back) == 9
    assert not parts["red"].gives_back


def test_a_sweep_alone_may_send_all_its_pods_to_the_scheduler() -> None:
    assert not parts_of([sweep("red", *many("r", 9), places=False)], nodes(1))["red"].held_back


def test_cores_that_nobody_asked_for_are_shared_by_weight_among_those_that_grow() -> None:
    sweeps = [
        sweep("red", runs("r", "n0"), grows=True),
        sweep("blue", runs("b", "n0", cpu=1.0), grows=True),
    ]
    parts = parts_of(sweeps, nodes(1, 8.0), terms={"red": NamespaceTerms(weight=2.0)})
    assert parts["red"].entitled.cpu == pytest.approx(1.0 + 4.0)
    assert parts["blue"].entitled.cpu == pytest.approx(1.0 + 2.0)
    assert parts["red"].meant_for_others(NodeName("n0")).cpu == pytest.approx(2.0)


def test_nobody_is_kept_cores_that_its_trials_cannot_use() -> None:
    sweeps = [
        sweep("red", runs("r", "n0", most_cpu=1.5), grows=True),
        sweep("blue", runs("b", "n0"), grows=True),
    ]
    parts = parts_of(sweeps, nodes(1, 8.0))
    assert parts["red"].entitled.cpu == pytest.approx(1.5)
    assert parts["blue"].entitled.cpu == pytest.approx(6.5)


def test_moves_are_shared_out_and_each_has_its_turn() -> None:
    sweeps = [sweep(name, *(runs(f"{name}{n}", "n0") for n in range(2))) for name in ("a", "b", "c", "d")]
    rounds = [AT_ONCE.decide(30.0 * turn, sweeps, nodes(1, 8.0), ArbiterState()).parts for turn in range(4)]
    assert [sum(part.moves for part in parts.values()) for parts in rounds] == [2, 2, 2, 2]
    assert all(any(parts[name].moves for parts in rounds) for name in ("a", "b", "c", "d"))


def test_nodes_that_can_come_are_shared_as_those_that_are_there() -> None:
    kinds = [NodeKind("small", 2.0, more=4)]
    sweeps = [sweep("red", *many("r", 30)), sweep("blue", *many("b", 30))]
    parts = AT_ONCE.decide(0.0, sweeps, [], ArbiterState(), kinds).parts
    assert {name: part.new_nodes for name, part in parts.items()} == {"red": {"small": 4}, "blue": {"small": 4}}
    assert "nodes that can come" in parts["red"].reason or "come first" in parts["red"].reason


def test_a_trial_that_no_node_is_large_enough_for_is_told_so_and_keeps_nobody_waiting() -> None:
    parts = parts_of([sweep("red", waits("huge", 99.0)), sweep("blue", *many("b", 30))], nodes(2))
    assert "even an empty one" in parts["red"].reason
    assert len(parts["blue"].starts) == 8
