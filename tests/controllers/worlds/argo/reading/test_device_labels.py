"""What labels of device plugins tell of a node's devices, on nodes as clusters have them."""

import pytest

from controllers.core.model import Node
from controllers.worlds.argo.reading.nodes import project_node
from controllers.worlds.argo.reading.pods import requests_of
from tests.controllers.worlds.argo.objects import node

GPU = "nvidia.com/gpu"
A100 = "NVIDIA-A100-SXM4-40GB"


def seen(labels: dict[str, str], **devices: str) -> Node:
    item = node("n1")
    item["metadata"].setdefault("labels", {}).update(labels)
    item["status"]["allocatable"].update(devices)
    record = project_node(item)
    assert record is not None
    return record.without(requests_of({}))


def of_nvidia(product: str, replicas: str = "1", strategy: str = "none", **more: str) -> dict[str, str]:
    """Return labels as GPU feature discovery writes them."""
    of_gpus = {"product": product, "replicas": replicas, "sharing-strategy": strategy, "count": "2"}
    return {
        **{f"{GPU}.{name}": text for name, text in of_gpus.items()},
        "nvidia.com/mig.capable": "true",
        "node.kubernetes.io/instance-type": "p4d.24xlarge",
        **more,
    }


def told(found: Node) -> tuple[str, str]:
    return found.device_model, str(found.replicas)


def test_whole_gpus_are_shared_by_nobody() -> None:
    assert told(seen(of_nvidia(A100), **{GPU: "8"})) == (A100, "no devices")


@pytest.mark.parametrize(
    ("product", "kind"), [("Tesla-T4-SHARED", GPU), ("Tesla-T4", "nvidia.com/gpu.shared"), ("Tesla-T4", f"{GPU}.slice")]
)
def test_time_slices_are_replicas_under_the_old_name_or_a_new_one(product: str, kind: str) -> None:
    assert told(seen(of_nvidia(product, "4", "time-slicing"), **{kind: "8"})) == (product, f"4 {kind}")


def test_replicas_of_mps_are_as_fast_as_each_other_only_where_there_are_as_many() -> None:
    four, ten = (seen(of_nvidia("Tesla-T4-SHARED", count, "mps"), **{GPU: "20"}) for count in ("4", "10"))
    assert told(four) == ("Tesla-T4-SHARED-MPS-4", f"4 {GPU}")
    assert told(ten) == ("Tesla-T4-SHARED-MPS-10", f"10 {GPU}")


def test_partitions_that_go_by_the_name_of_whole_gpus_are_another_model() -> None:
    labels = of_nvidia(f"{A100}-MIG-1g.5gb", **{"nvidia.com/mig.strategy": "single"})
    assert told(seen(labels, **{GPU: "56"})) == (f"{A100}-MIG-1g.5gb", "no devices")


def test_partitions_of_their_own_kinds_are_shared_only_where_their_own_label_says_so() -> None:
    mixed = {
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.5gb.product": f"{A100}-MIG-1g.5gb-SHARED",
        "nvidia.com/mig-1g.5gb.replicas": "2",
        "nvidia.com/mig-3g.20gb.product": f"{A100}-MIG-3g.20gb",
        "nvidia.com/mig-3g.20gb.replicas": "1",
    }
    # Of GPUs that are all cut, none is whole: feature discovery writes 0 then.
    found = seen(
        of_nvidia(A100, "0", **mixed), **{GPU: "0", "nvidia.com/mig-1g.5gb": "8", "nvidia.com/mig-3g.20gb": "2"}
    )
    assert told(found) == (A100, "2 nvidia.com/mig-1g.5gb")
    renamed = seen(of_nvidia(A100, "0", **mixed), **{"nvidia.com/mig-1g.5gb.shared": "8"})
    assert told(renamed) == (A100, "2 nvidia.com/mig-1g.5gb.shared")


def test_other_devices_of_a_node_with_shared_gpus_are_not_shared() -> None:
    others = {"rdma/hca": "63", "nvidia.com/hostdev": "8", "devices.kubevirt.io/kvm": "1000"}
    assert told(seen(of_nvidia("Tesla-T4-SHARED", "4"), **{GPU: "8"}, **others))[1] == f"4 {GPU}"


@pytest.mark.parametrize(
    ("sharing", "model", "replicas"),
    [
        ({}, "nvidia-tesla-t4", "no devices"),
        ({"max-shared-clients-per-gpu": "4", "gpu-sharing-strategy": "time-sharing"}, "nvidia-tesla-t4-SHARED", "4 "),
        ({"max-shared-clients-per-gpu": "4", "gpu-sharing-strategy": "mps"}, "nvidia-tesla-t4-SHARED-MPS-4", "4 "),
        ({"gpu-partition-size": "1g.5gb"}, "nvidia-tesla-t4-MIG-1g.5gb", "no devices"),
    ],
)
def test_googles_labels_tell_more_than_the_type_of_the_machine(
    sharing: dict[str, str], model: str, replicas: str
) -> None:
    labels = {f"cloud.google.com/gke-{name}": text for name, text in sharing.items()}
    labels |= {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
        "node.kubernetes.io/instance-type": "n1-standard-8",
    }
    assert told(seen(labels, **{GPU: "4"})) == (model, f"4 {GPU}" if replicas == "4 " else replicas)


@pytest.mark.parametrize(
    ("label", "product", "kind"),
    [
        ("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM", "amd.com/gpu"),
        ("beta.amd.com/gpu.product-name", "AMD_Instinct_MI210", "amd.com/gpu"),
        ("gpu.intel.com/product", "Max_1550", "gpu.intel.com/i915"),
    ],
)
def test_the_products_of_amd_and_intel_are_models(label: str, product: str, kind: str) -> None:
    found = seen({label: product, "node.kubernetes.io/instance-type": "metal"}, **{kind: "8"})
    assert told(found) == (product, "no devices")


def test_where_nobody_names_the_devices_the_type_of_the_machine_does() -> None:
    assert told(seen({"node.kubernetes.io/instance-type": "g4dn.xlarge"}, **{GPU: "1"})) == (
        "g4dn.xlarge",
        "no devices",
    )
    assert told(seen({}, **{GPU: "1"})) == ("", "no devices")
    assert told(seen({"node.kubernetes.io/instance-type": "m5.large"})) == ("", "no devices"), "it has none"


@pytest.mark.parametrize(
    ("written", "taken"), [("0", 0), ("-2", 0), ("two", 0), ("99999", 0), ("9999", 1024), ("\u0664", 0), ("", 0)]
)
def test_a_label_that_makes_no_sense_changes_no_devices(written: str, taken: int) -> None:
    assert seen({f"{GPU}.replicas": written}, **{GPU: "8"}).replicas.count(GPU) == taken
