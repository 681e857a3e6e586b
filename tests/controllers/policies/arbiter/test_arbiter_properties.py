"""What holds for the arbiter whatever sweeps, nodes and terms there are."""

import time
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.model import Node, NodeName, TrialId
from controllers.policies.arbiter import Amount, Arbiter, ArbiterState, Claimant, NamespaceTerms, Part, SweepDemand
from tests.controllers.policies.arbiter.sharing_sweeps import AT_ONCE, many, nodes, sweep
from tests.property_examples import examples

SLACK = 1e-6
NAMESPACES = ("red", "blue", "green")


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[SweepDemand], list[Node], dict[str, NamespaceTerms]]:
    """Some sweeps whose trials run where they fit, or wait; the nodes; what namespaces are granted."""
    there = [
        Node(NodeName(f"n{n}"), draw(st.integers(1, 8)), draw(st.integers(4, 32)))
        for n in range(draw(st.integers(1, 4)))
    ]
    free = {node.name: [node.cpu, node.memory] for node in there}
    sweeps = []
    for number in range(draw(st.integers(1, 5))):
        trials = []
        each = Amount(float(draw(st.integers(1, 4))), float(draw(st.integers(0, 4))))
        for index in range(draw(st.integers(0, 6))):
            on = draw(st.sampled_from(there)).name
            fits = free[on][0] >= each.cpu and free[on][1] >= each.memory
            trial = Claimant(TrialId(f"s{number}.t{index}"), each, since=float(draw(st.integers(0, 3))))
            if fits and draw(st.booleans()):
                free[on][0] -= each.cpu
                free[on][1] -= each.memory
                leaving = draw(st.booleans()) and draw(st.booleans())
                trial = replace(trial, cpu=each.cpu, nodes=(on,), steady=not leaving, leaving=leaving, attempt=1)
            trials.append(trial)
        namespace = draw(st.sampled_from(NAMESPACES))
        demand = SweepDemand(f"s{number}", namespace, tuple(trials), float(draw(st.integers(1, 3))))
        sweeps.append(replace(demand, priority=draw(st.integers(-1, 1)), places=draw(st.booleans())))
    quotas = st.one_of(st.none(), st.floats(0, 12))
    terms = {
        name: NamespaceTerms(float(draw(st.integers(1, 3))), draw(st.integers(0, 1)), draw(quotas))
        for name in draw(st.sets(st.sampled_from(NAMESPACES)))
    }
    return sweeps, there, terms


def decided(sweeps: Sequence[SweepDemand], there: Sequence[Node], terms: dict[str, NamespaceTerms]) -> dict[str, Part]:
    arbiter = AT_ONCE.model_copy(update={"terms": terms})
    return dict(arbiter.decide(100.0, sweeps, there, ArbiterState()).parts)


def entitled_in(namespace: str, sweeps: Sequence[SweepDemand], parts: dict[str, Part]) -> float:
    return sum(parts[demand.name].entitled.cpu for demand in sweeps if demand.namespace == namespace)


@given(scenes())
@settings(max_examples=examples(150), deadline=None)
def test_nobody_is_entitled_to_more_than_there_is_nor_beyond_a_quota(
    scene: tuple[list[SweepDemand], list[Node], dict[str, NamespaceTerms]],
) -> None:
    sweeps, there, terms = scene
    parts = decided(sweeps, there, terms)
    assert sum(part.entitled.cpu for part in parts.values()) <= sum(node.cpu for node in there) + SLACK
    assert sum(part.entitled.memory for part in parts.values()) <= sum(node.memory for node in there) + SLACK
    for name, granted in terms.items():
        if granted.quota_cpu is not None:
            assert entitled_in(name, sweeps, parts) <= granted.quota_cpu + SLACK


@given(scenes())
@settings(max_examples=examples(150), deadline=None)
def test_no_room_is_left_that_a_waiting_trial_would_fit_in(
    scene: tuple[list[SweepDemand], list[Node], dict[str, NamespaceTerms]],
) -> None:
    sweeps, there, terms = scene
    parts = decided(sweeps, there, terms)
    for demand in sweeps:
        part = parts[demand.name]
        granted = terms.get(demand.namespace, NamespaceTerms())
        for trial in demand.trials:
            if trial.nodes or trial.id in part.starts:
                continue
            quota = granted.quota_cpu
            if quota is not None and entitled_in(demand.namespace, sweeps, parts) + trial.each.cpu > quota + SLACK:
                continue
            for node in there:
                used_cpu = sum(t.each.cpu for d in sweeps for t in d.trials if node.name in t.nodes)
                used_memory = sum(t.each.memory for d in sweeps for t in d.trials if node.name in t.nodes)
                claimed = parts[demand.name].claims.get(node.name, Amount())
                free = Amount(node.cpu - used_cpu - claimed.cpu, node.memory - used_memory - claimed.memory)
                assert not (trial.each.cpu <= free.cpu - SLACK and trial.each.memory <= free.memory - SLACK)


@given(scenes(), st.randoms())
@settings(max_examples=examples(100), deadline=None)
def test_the_order_in_which_anything_is_given_does_not_matter(
    scene: tuple[list[SweepDemand], list[Node], dict[str, NamespaceTerms]], chance: object
) -> None:
    sweeps, there, terms = scene
    shuffled = [replace(demand, trials=tuple(reversed(demand.trials))) for demand in sweeps]
    chance.shuffle(shuffled)  # type: ignore[attr-defined] # a random.Random of hypothesis' own
    assert decided(sweeps, there, terms) == decided(shuffled, there[::-1], terms)


@given(st.integers(1, 4), st.floats(0.1, 10), st.floats(0.1, 10), st.integers(1, 30))
@settings(max_examples=examples(100), deadline=None)
def test_more_weight_never_gives_less(others: int, weight: float, more: float, cores: int) -> None:
    def entitled(of: float) -> float:
        rest = [sweep(f"o{number}", *many(f"o{number}.", 30)) for number in range(others)]
        mine = sweep("mine", *many("m", 30))
        return decided([mine, *rest], nodes(1, float(cores)), {"mine": NamespaceTerms(of)})["mine"].entitled.cpu

    assert entitled(weight + more) >= entitled(weight) - SLACK


@given(scenes())
@settings(max_examples=examples(100), deadline=None)
def test_a_sweep_that_has_had_nothing_for_long_gets_one_trials_worth(
    scene: tuple[list[SweepDemand], list[Node], dict[str, NamespaceTerms]],
) -> None:
    sweeps, there, _ = scene
    longest = max(node.cpu for node in there), max(node.memory for node in there)
    starved = next((d for d in sweeps if d.trials and not any(t.nodes for t in d.trials)), None)
    if starved is None or not all(node.cpu >= starved.trials[0].each.cpu for node in there):
        return
    if starved.trials[0].each.memory > longest[1]:
        return
    state = ArbiterState(hungry={starved.name: 0.0})
    fits = any(node.memory >= starved.trials[0].each.memory for node in there)
    parts = Arbiter().decide(10_000.0, sweeps, there, state).parts
    assert not fits or parts[starved.name].starts


@given(scenes())
@settings(max_examples=examples(100), deadline=None)
def test_nobody_gives_back_below_its_own_part(
    scene: tuple[list[SweepDemand], list[Node], dict[str, NamespaceTerms]],
) -> None:
    sweeps, there, terms = scene
    parts = decided(sweeps, there, terms)
    for demand in sweeps:
        part = parts[demand.name]
        leaving = set(part.gives_back)
        kept = sum(t.each.cpu for t in demand.trials if t.nodes and not t.leaving and t.id not in leaving)
        promised = sum(trial.each.cpu for trial in demand.trials if trial.id in part.starts)
        assert kept + promised >= part.entitled.cpu - SLACK


def test_a_thousand_sweeps_with_twenty_thousand_trials_are_decided_on_at_once() -> None:
    sweeps = [sweep(f"s{n}", *many(f"s{n}.", 20), namespace=f"ns{n % 50}") for n in range(1000)]
    began = time.process_time()
    AT_ONCE.decide(0.0, sweeps, nodes(200, 16.0), ArbiterState())
    assert time.process_time() - began < 30, "the work must not grow with sweeps times trials times nodes"
