import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from controllers.core.actions import Decision, Migrate, Place, Resize
from controllers.core.devices import Devices
from controllers.core.model import Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies import Kais
from controllers.policies.kais.dispatch import why_untrained
from controllers.policies.kais.grid import GRID, MOST, on_grid
from controllers.policies.kais.network import BIASES, SHAPES, Embedding, PolicyNetwork
from controllers.policies.kais.scene import Scene, scene
from controllers.policies.kais.state import KaisState
from controllers.policies.kais.weights import RANGES, SHIPPED, Trained, read
from controllers.policies.kit.weights_file import MOST_BYTES, BadWeightsError, checksum
from controllers.policies.kit.work_left import estimate_work, measure_sweep
from tests.controllers.policies.policy_fakes import node, progress, snapshot, trial
from tests.property_examples import examples

AT = 100.0


def drawn_network(seed: int) -> PolicyNetwork:
    chance = np.random.default_rng(seed)
    return PolicyNetwork(
        {name: on_grid(chance.normal(0, 0.5, shape)) for name, shape in SHAPES.items()},
        {name: on_grid(chance.normal(0, 0.1, length)) for name, length in BIASES.items()},
    )


NETWORK = drawn_network(0)
ANYWHERE = {kind: np.array([[0.0] * len(names), [1.0] * len(names)]) for kind, names in RANGES.items()}


class WithWeights(Kais):
    """Kais with weights by chance, which take any cluster for one that they know."""

    def _trained(self) -> Trained:
        return Trained(NETWORK, ANYWHERE)


ANY_WEIGHTS = WithWeights()


def waits(name: str, **changes: Any) -> Trial:  # noqa: ANN401 - any field of Trial
    return trial(name, phase=Phase.PENDING, gated=True, attempt=0, **changes)


def seen(trials: list[Trial], nodes: list[Node]) -> Scene:
    now = snapshot(AT, trials, nodes)
    known = measure_sweep(now, KaisState().measured)
    found = scene(now, estimate_work(now, known, 1.0), {}, arriving=False)
    assert found is not None
    return found


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Trial], list[Node]]:
    """Return any trials on any nodes, among them huge and tiny ones."""
    amounts = st.sampled_from([1e-3, 0.1, 1.0, 4.0, 64.0, 1e5])
    nodes = [node(f"n{number}", draw(amounts)) for number in range(draw(st.integers(1, 6)))]
    trials = []
    for number in range(draw(st.integers(1, 10))):
        place = draw(st.sampled_from([None, *nodes]))
        cpu, told = draw(amounts), draw(st.none() | st.integers(0, 10**12))
        report = None if told is None else replace(progress(1.0, 50.0), step=told, steps_total=10**12, cpu_seconds=9.0)
        name = f"t{number}"
        trials.append(waits(name, cpu=cpu) if place is None else trial(name, place.name, cpu=cpu, progress=report))
    return trials, nodes


def scores(found: Scene, network: PolicyNetwork = NETWORK) -> np.ndarray:
    embedding = Embedding(network, found)
    return np.array([embedding.places(number, found.pair_rows(number)) for number in range(len(found.trials))])


@given(cluster=clusters(), seed=st.integers(0, 5))
def test_every_score_is_a_number_whatever_the_cluster(cluster: tuple[list[Trial], list[Node]], seed: int) -> None:
    found = seen(*cluster)
    embedding = Embedding(drawn_network(seed), found)
    every = [embedding.places(number, found.pair_rows(number)) for number in range(len(found.trials))]
    assert np.isfinite(every).all()
    assert np.isfinite(embedding.ways(np.arange(len(found.nodes)))).all()
    assert (np.abs(embedding.nodes_again) <= MOST).all()
    assert (embedding.nodes_again * GRID == np.rint(embedding.nodes_again * GRID)).all()


@settings(max_examples=examples(60))
@given(cluster=clusters(), order=st.randoms(use_true_random=False))
def test_names_and_order_change_no_score(cluster: tuple[list[Trial], list[Node]], order: object) -> None:
    trials, nodes = cluster
    names = [f"m{number}" for number in range(len(nodes))]
    order.shuffle(names)  # type: ignore[attr-defined]
    to = {one.name: NodeName(new) for one, new in zip(nodes, names, strict=True)}
    ids = [f"s{number}" for number in range(len(trials))]
    order.shuffle(ids)  # type: ignore[attr-defined]
    renamed = [
        replace(one, id=TrialId(new), nodes=tuple(to[place] for place in one.nodes))
        for one, new in zip(trials, ids, strict=True)
    ]
    before, after = seen(trials, nodes), seen(renamed, [replace(one, name=to[one.name]) for one in nodes])
    new_id = {one.id: TrialId(new) for one, new in zip(trials, ids, strict=True)}
    rows = [after.trials.index(new_id[name]) for name in before.trials]
    columns = [after.nodes.index(to[name]) for name in before.nodes]
    # Sums of work depend on the order in their last digits, which is a step on the grid at most.
    assert np.abs(scores(before) - scores(after)[np.ix_(rows, columns)]).max() <= 0.05


def test_sums_on_the_grid_are_the_same_in_any_order() -> None:
    chance = np.random.default_rng(3)
    values, weights = on_grid(chance.normal(0, 4, (50, 64))), on_grid(chance.normal(0, 2, (64, 16)))
    order = chance.permutation(64)
    assert (values @ weights == values[:, order] @ weights[order]).all()


def test_a_place_that_is_counted_in_shows_as_if_it_had_been_there() -> None:
    nodes = [node("a", 8.0), node("b", 8.0), node("c", 8.0)]
    found = seen([waits("x"), waits("y"), trial("z", "c")], nodes)
    embedding = Embedding(NETWORK, found)
    before = embedding.nodes_again.copy()
    found.attach(0, 1)
    embedding.update(1)
    assert (embedding.nodes_again[[0, 2]] == before[[0, 2]]).all()
    assert (embedding.nodes_again[1] != before[1]).any()
    assert (embedding.node_rows == found.node_rows()).all()


def decided(now: Snapshot, policy: Kais = ANY_WEIGHTS) -> Decision[KaisState]:
    return policy.decide(now, policy.initial())


def test_a_reason_names_the_two_best_nodes_and_their_scores() -> None:
    found = decided(snapshot(AT, [waits("x")], [node("a", 8.0), node("b", 4.0), node("c", 2.0)])).proposals
    (place,) = found
    assert isinstance(place.action, Place)
    words = place.reason.split()
    assert words[0] == "placing:"
    assert words[1] == place.action.node
    assert {words[1], words[6]} < {"a", "b", "c"}
    assert words[2] == "scores"
    assert float(words[3].rstrip(",")) >= float(words[7])


def test_equal_nodes_are_told_apart_by_their_names_alone() -> None:
    found = decided(snapshot(AT, [waits("x")], [node("b", 8.0), node("a", 8.0)])).proposals
    assert found[0].action == Place(TrialId("x"), (NodeName("a"),))


def test_a_trial_goes_only_where_there_is_room() -> None:
    nodes = [
        node("full", 1.0),
        node("roomy", 1.0),
        node("not-ready", 9.0, ready=False),
        node("theirs", 9.0, only_for=frozenset({"gpu"})),
    ]
    found = decided(snapshot(AT, [trial("y", "full"), waits("x"), waits("z")], nodes)).proposals
    assert [one.action for one in found if isinstance(one.action, Place)] == [Place(TrialId("x"), (NodeName("roomy"),))]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"workers": 2}, "it is a gang"),
        ({"max_workers": 3}, "it is a gang"),
        ({"devices": Devices.of({"gpu": 1})}, "gpu"),
    ],
)
def test_what_it_was_not_trained_on_is_left_to_the_default_scheduler(changes: dict[str, object], why: str) -> None:
    odd = waits("x", **changes)
    assert why in (why_untrained(odd) or "")
    nodes = [node("a", 8.0, devices=Devices.of({"gpu": 2}))]
    (found,) = decided(snapshot(AT, [odd], nodes)).proposals
    assert found.action == Place(TrialId("x"))
    assert "left to the default scheduler" in found.reason
    assert why in found.reason


def test_a_cluster_unlike_those_of_the_training_is_left_to_the_default_scheduler() -> None:
    class Narrow(WithWeights):
        def _trained(self) -> Trained:
            return Trained(NETWORK, {**ANYWHERE, "cluster": np.array([[0.9] * 6, [1.0] * 6])})

    running = [trial(f"r{number}", "a", progress=progress(1.0, 99.0)) for number in range(3)]
    found = decided(snapshot(AT, [waits("x"), *running], [node("a", 8.0), node("b", 8.0)]), Narrow()).proposals
    assert [one.action for one in found] == [Place(TrialId("x"))]
    assert "cluster feature 'trials arrive' is 0.00, and it was trained on 0.90 to 1.00" in found[0].reason


def test_trials_of_a_node_are_shared_by_one_of_five_ways() -> None:
    running = [
        trial(
            f"r{number}", "a", cpu=2.0, progress=replace(progress(1.0, 99.0, cpu=50.0), steps_total=1000 * (1 + number))
        )
        for number in range(4)
    ]
    found = decided(snapshot(AT, running, [node("a", 8.0)])).proposals
    assert all(isinstance(one.action, Resize) for one in found)
    assert all(one.reason.startswith("sharing: ") and one.reason.count(" scores ") == 1 for one in found)


def test_a_trial_is_not_moved_by_an_old_report() -> None:
    crowd = [trial(f"r{number}", "a", progress=progress(1.0, 1.0)) for number in range(6)]
    found = decided(snapshot(1e6, crowd, [node("a", 8.0), node("b", 8.0)])).proposals
    assert not any(isinstance(one.action, Migrate) for one in found)


def test_the_file_that_is_shipped_is_small_and_is_read() -> None:
    assert SHIPPED.stat().st_size <= MOST_BYTES
    assert set(read().ranges) == set(RANGES)


def without(tensors: dict[str, np.ndarray], told: dict[str, str]) -> dict[str, str]:
    del tensors["bias.node"]
    return {**told, "sha256": checksum(tensors)}


def changed(tensors: dict[str, np.ndarray], told: dict[str, str]) -> dict[str, str]:
    tensors["bias.node"] = tensors["bias.node"] + np.int16(1)
    return told


def older(tensors: dict[str, np.ndarray], told: dict[str, str]) -> dict[str, str]:
    del tensors["bias.node"]
    return {**told, "features": "0"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without, "of another network: bias.node is None where (16,) belongs"),
        (changed, "damaged: its checksum is"),
        (older, "trained on features of version '0', and this code has '1'"),
    ],
)
def test_a_file_that_is_not_the_right_one_is_refused_by_name(
    spoil: Callable[[dict[str, np.ndarray], dict[str, str]], dict[str, str]], message: str, tmp_path: Path
) -> None:
    with safe_open(SHIPPED, framework="numpy") as file:
        tensors, told = {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())  # noqa: SIM118
    path = tmp_path / "weights.safetensors"
    save_file(tensors, path, spoil(tensors, told))
    with pytest.raises(BadWeightsError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "content", [None, b"", b"no weights at all", b"x" * (MOST_BYTES + 1)], ids=["missing", "empty", "text", "too large"]
)
def test_a_file_that_is_none_is_refused_by_name(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadWeightsError, match=r"weights\.safetensors"):
        read(path)


def test_deciding_takes_neither_torch_nor_a_clock() -> None:
    program = (
        "import json, sys; import controllers.policies; controllers.policies.Kais(); "
        "print(json.dumps([name for name in ('torch', 'mlflow') if name in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert json.loads(ran.stdout) == []
