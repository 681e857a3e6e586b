"""The file in which an owner says what nodes can come: read whole, or refused with every problem named."""

from pathlib import Path

import pytest

from controllers.cluster.node_kinds_file import MOST_BYTES, NodeKindsError, read_node_kinds
from controllers.core.devices import Devices
from controllers.worlds.argo.reading.demands import Taint
from controllers.worlds.argo.reading.node_kinds import GivenKind, GivenKinds, GivenPrice

WHOLE = """
kinds:
- name: gpus
  labels: {cloud.google.com/gke-nodepool: gpus}
  cpu: 7500m
  memory: 28Gi
  devices: {nvidia.com/gpu: 1}
  taints: [nvidia.com/gpu=present, team]
  most: 8
  boots: 150
  price: 0.71
  spot: true
prices:
- labels: {node.kubernetes.io/instance-type: m5.large}
  price: 0.096
"""


def read(folder: Path, text: str) -> GivenKinds:
    file = folder / "kinds.yaml"
    file.write_text(text, encoding="utf-8")
    return read_node_kinds(str(file))


def test_every_field_is_read(tmp_path: Path) -> None:
    kind = GivenKind(
        name="gpus",
        labels={"cloud.google.com/gke-nodepool": "gpus"},
        cpu=7.5,
        memory=28 * 2.0**30,
        devices=Devices.of({"nvidia.com/gpu": 1}),
        taints=(Taint("nvidia.com/gpu", "present", "NoSchedule"), Taint("team", "", "NoSchedule")),
        most=8,
        boots_s=150.0,
        price=0.71,
        spot=True,
    )
    price = GivenPrice({"node.kubernetes.io/instance-type": "m5.large"}, 0.096)
    assert read(tmp_path, WHOLE) == GivenKinds((kind,), (price,))


@pytest.mark.parametrize("text", ["", "kinds: []", "prices: []"])
def test_nothing_may_be_given(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == GivenKinds() == read_node_kinds("")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("cpu: 7500m", "cpu: much", "kinds.0.cpu: .*'much' is no quantity"),
        ("memory: 28Gi", "", "kinds.0.memory: Field required"),
        ("labels: {cloud.google.com/gke-nodepool: gpus}", "labels: {}", "kinds.0.labels"),
        ("nvidia.com/gpu: 1", "cpu: 1", "no device"),
        ("most: 8", "most: -1", "kinds.0.most"),
        ("boots: 150", "boots: .inf", "kinds.0.boots"),
        ("price: 0.096", "price: -1", "prices.0.price"),
        ("spot: true", "spott: true", "kinds.0.spott: Extra"),
        ("prices:", "prices: {", "cannot be read"),
        ("prices:", "---\nprices:", "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, before: str, after: str, says: str) -> None:
    with pytest.raises(NodeKindsError, match=says):
        read(tmp_path, WHOLE.replace(before, after))


def test_two_kinds_of_one_name_and_a_file_that_is_missing_or_too_long_are_refused(tmp_path: Path) -> None:
    one = WHOLE.partition("prices:")[0]
    with pytest.raises(NodeKindsError, match="several kinds named gpus"):
        read(tmp_path, one + one.replace("\nkinds:\n", ""))
    with pytest.raises(NodeKindsError, match="cannot be read"):
        read_node_kinds(str(tmp_path / "none.yaml"))
    with pytest.raises(NodeKindsError, match="more than"):
        read(tmp_path, "#" * (MOST_BYTES + 1))
