"""What makes a round of the arbiter quick finds the same as a look at everything, with far fewer looks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.devices import Devices
from controllers.core.model import TrialId
from controllers.policies.arbiter import Amount
from controllers.policies.arbiter.demands import NOTHING
from controllers.policies.arbiter.filling import LOOKS_EACH, Filling, Line
from controllers.policies.arbiter.first_fit import FirstFit
from controllers.policies.arbiter.leaving_order import LeavingOrder
from tests.controllers.policies.arbiter.sharing_sweeps import nodes, runs, sweep, waits
from tests.property_examples import examples

AMOUNTS = st.builds(
    Amount,
    st.integers(0, 4).map(float),
    st.integers(0, 4).map(float),
    st.dictionaries(st.sampled_from(["a/gpu", "b/gpu"]), st.integers(1, 3)).map(Devices.of),
)


@given(st.lists(AMOUNTS, min_size=1, max_size=20), st.lists(st.tuples(st.integers(0, 19), AMOUNTS)), AMOUNTS)
@settings(max_examples=examples(200), deadline=None)
def test_the_first_place_that_holds_an_amount_is_found(
    row: list[Amount], changes: list[tuple[int, Amount]], wanted: Amount
) -> None:
    places = FirstFit(len(row))
    for index, amount in (*enumerate(row), *((index % len(row), amount) for index, amount in changes)):
        row[index] = amount
        places.put(index, amount)
    fitting = [index for index, amount in enumerate(row) if wanted.within(amount)]
    for begin in range(len(row) + 1):
        assert places.first(wanted, begin) == min((i for i in fitting if i >= begin), default=None)


@given(st.lists(st.tuples(AMOUNTS, st.integers(0, 2), st.booleans()), max_size=12), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_who_leaves_for_an_amount_is_as_if_one_after_the_other_were_asked(
    trials: list[tuple[Amount, int, bool]], data: st.DataObject
) -> None:
    there = {TrialId(f"t{n:02}"): amount for n, (amount, _, _) in enumerate(trials)}
    ranks = {TrialId(f"t{n:02}"): (float(share), own, 0.0) for n, (_, share, own) in enumerate(trials)}
    order = LeavingOrder(there, ranks)
    for name in data.draw(st.sets(st.sampled_from(sorted(there)))) if there else ():
        order.remove(name, there.pop(name))
    wanted = lacking = data.draw(AMOUNTS)
    leaving = []
    for name in sorted(sorted(there), key=ranks.__getitem__, reverse=True):
        if lacking.within(NOTHING):
            break
        lacking -= there[name]
        leaving.append(ranks[name])
    assert order.until(wanted) == (min(leaving, default=(0.0, False, 0.0)), len(leaving))


def looked(number_of_nodes: int, cpu: float) -> int:
    """Return how much is looked at for 1,000 waiting trials that all ask for other amounts, from 1 to 1.1 cores."""
    waiting = [waits(f"w{n:04}", 1.0 + (n + 1) / 1e4) for n in range(1000)]
    filling = Filling([Line(sweep("other", *waiting), waiting)], {}, nodes(number_of_nodes, cpu))
    filling.fill()
    return filling.ledger.looks


@pytest.mark.parametrize("cores", [1.0, 4.0])
def test_trials_that_all_ask_for_other_amounts_are_not_looked_for_on_every_node_each(cores: float) -> None:
    few, many = looked(32, cores), looked(1024, cores)
    assert many <= 1000 * 4 * 10, "a few times the logarithm of the number of nodes"
    assert few <= 1000 * 4 * 5


def test_looks_for_a_sweep_are_bounded_whatever_its_trials_ask_for() -> None:
    # Half of the nodes have no cores, the others no memory: no part of the row can be passed over.
    busy = [runs(f"f{n}", f"n{n}", each=Amount(*((3.9, 1.0) if n % 2 else (0.1, 63.0)))) for n in range(128)]
    there = [node.__class__(node.name, 4.0, 64.0) for node in nodes(128)]
    hostile = [waits(f"w{n:04}", each=Amount(1.0 + n / 1e4, 30.0 - n / 1e3)) for n in range(1000)]
    lines = [Line(sweep("busy", *busy), busy), Line(sweep("hostile", *hostile), hostile)]
    filling = Filling(lines, {}, there)
    lines[0].looks = 0
    filling.fill()
    assert filling.ledger.looks <= LOOKS_EACH * 1000 + 20 * 128 * 2
