"""Records of pods, nodes and workflows, whatever is in them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.worlds.argo.calls.untrusted import quantity
from controllers.worlds.argo.reading.nodes import project_node
from controllers.worlds.argo.reading.pods import ResizeState, project_other, project_pod, requests_of
from controllers.worlds.argo.reading.workflows import WorkflowRecord, project_workflow
from tests.controllers.worlds.argo.objects import node, pod, steps, template, workflow

Json = dict[str, Any]
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1e999", "NaN", "75"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "cpu", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)

ODD_QUANTITIES: list[object] = ["", "much", "-1", "1e999", "9" * 100, None, [], {}]


def paths(item: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    return [at, *(path for key, value in inner for path in paths(value, (*at, key)))]


def changed(item: Any, path: tuple[str | int, ...], value: object) -> Any:  # noqa: ANN401
    if not path:
        return value
    copied: Any = dict(item) if isinstance(item, dict) else list(item)
    copied[path[0]] = changed(copied[path[0]], path[1:], value)
    return copied


SAMPLES: list[tuple[Callable[[Json], object], Json]] = [
    (project_pod, pod(on="n1", gated=True, deleted=1.0)),
    (project_other, pod(on="n1")),
    (project_node, node("n1", taints=[{"effect": "NoSchedule"}])),
    (project_workflow, workflow(steps("a", "Running", ("n1", "75"), ("n2", None)))),
    (project_workflow, workflow(steps("a", "Failed", ("n1", "75")), packed=True)),
]


@pytest.mark.parametrize(("project", "sample"), SAMPLES)
@given(data=st.data())
def test_anything_may_stand_anywhere(project: Callable[[Json], object], sample: Json, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(paths(sample)[1:]))
    project(changed(sample, path, data.draw(ODD)))


@given(st.dictionaries(st.text(max_size=5), ODD, max_size=4))
def test_an_object_of_another_kind_is_no_pod_and_no_workflow(item: Json) -> None:
    assert project_pod(item) is None
    assert project_workflow(item) is None


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("100m", 0.1),
        ("2", 2.0),
        (3, 3.0),
        ("16Mi", 2.0**24),
        ("1e3", 1000.0),
        *((odd, 0.0) for odd in ODD_QUANTITIES),
    ],
)
def test_a_quantity_is_finite_and_not_negative_or_nothing(written: object, amount: float) -> None:
    assert quantity({"cpu": written}, "cpu") == amount


def test_a_pods_load_is_what_the_scheduler_counts() -> None:
    item = pod(on="n1", cpu="300m", has="500m")
    item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "50m", "memory": "8Mi"}}
    item["spec"]["overhead"] = {"cpu": "10m"}
    item["spec"]["initContainers"] = [
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "20m"}}},
        {"name": "init", "resources": {"requests": {"memory": "64Mi"}}},
    ]
    load = requests_of(item)
    assert load.cpu == pytest.approx(0.5 + 0.05 + 0.02 + 0.01)
    assert load.memory == 64 * 2**20


def test_what_the_kubelet_says_to_a_wish_is_kept() -> None:
    says = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    found = project_pod(pod(on="n1", cpu="800m", has="200m", conditions=says))
    assert found is not None
    assert (found.share.wanted, found.share.has, found.share.state) == (0.8, 0.2, ResizeState.DEFERRED)


def test_skipped_steps_and_steps_of_other_templates_are_no_trials() -> None:
    nodes = steps("a", "Skipped") | steps("main", "Running", ("n1", None))
    found = project_workflow(workflow(nodes))
    assert found is not None
    assert found.steps == {}


def test_inputs_fill_in_the_templates_placeholders() -> None:
    nodes = steps("a", "Running", ("n1", None))
    nodes["sweep-x-a"]["inputs"] = {"parameters": [{"name": "trial", "value": "t007"}]}
    item = workflow(nodes)
    template = item["spec"]["templates"][1]
    template["metadata"]["labels"]["hera-specon.io/trial"] = "{{inputs.parameters.trial}}"
    template["container"]["env"][0]["value"] = "{{workflow.uid}}.vae.{{inputs.parameters.trial}}"
    found = project_workflow(item)
    assert found is not None
    (step,) = found.steps.values()
    assert (step.definition.id, step.definition.name) == ("uid-of-workflow.vae.t007", "sweep.t007")


def record(**changes: object) -> WorkflowRecord:
    item = workflow(steps("a", "Running", ("n1", None)))
    item["status"] = {"phase": "Running"} | changes
    found = project_workflow(item)
    assert found is not None
    return found


def test_why_the_nodes_of_argos_record_are_not_to_be_read_is_told() -> None:
    assert record().unread is None
    assert "in a database (nodeStatusOffLoad)" in (record(offloadNodeStatusVersion="fnv:1234567").unread or "")
    # WORKFLOW_COMPRESSION_ALGORITHM of Argo 4.1 may be zstd: these are the first bytes of what it packs.
    assert "cannot be unpacked" in (record(compressedNodes="KLUv/SQA").unread or "")


def planned(items: list[object], **more: object) -> Json:
    """Return a workflow whose sweep starts a trial for each of ``items``."""
    trial = template("sweep-trial")
    trial["metadata"]["labels"]["hera-specon.io/trial"] = "{{inputs.parameters.trial}}"
    trial["container"]["env"][0]["value"] = "{{workflow.uid}}.sweep.{{inputs.parameters.trial}}"
    trial["container"]["env"].append({"name": "SPECON_SWEEP_ID", "value": "{{workflow.uid}}.sweep"})
    sweep = {"name": "sweep", "steps": [[{"name": "arrival", "template": "sweep-arrival", "withItems": items}]], **more}
    return workflow({}, templates=[sweep, trial, {"name": "sweep-delay", "suspend": {"duration": "1s"}}])


def to_come(item: Json) -> list[tuple[str, float]]:
    found = project_workflow(item)
    assert found is not None
    return [(trial.id, trial.at) for trial in found.to_come]


def test_trials_that_will_be_submitted_later_are_read_off_the_sweeps_items() -> None:
    item = planned([{"trial": "t000", "delay": "0s"}, {"trial": "t001", "delay": "12.5s"}, {"trial": "t002"}])
    assert to_come(item) == [
        ("uid-of-workflow.sweep.t000", 0.0),
        ("uid-of-workflow.sweep.t001", 12.5),
        ("uid-of-workflow.sweep.t002", 0.0),
    ]
    found = project_workflow(item)
    assert found is not None
    assert (found.to_come[0].cpu, found.to_come[0].memory) == (0.1, 16 * 2**20)


def test_a_trial_with_a_step_is_not_to_come_any_more() -> None:
    item = planned([{"trial": "t000"}, {"trial": "t001"}])
    begun = steps("a", "Running", ("n1", None))
    begun["sweep-x-a"]["templateName"] = "sweep-trial"
    begun["sweep-x-a"]["inputs"] = {"parameters": [{"name": "trial", "value": "t000"}]}
    item["status"]["nodes"] = begun
    assert to_come(item) == [("uid-of-workflow.sweep.t001", 0.0)]


@pytest.mark.parametrize("odd", [None, 3, "t", [], {"trial": 7}, {"delay": "-5s"}, {"trial": ""}])
def test_an_odd_item_is_no_trial_to_come(odd: object) -> None:
    assert to_come(planned([odd])) == []


@pytest.mark.parametrize("delay", ["soon", "1e999s", "-5s", "nans", 5])
def test_an_odd_delay_is_none(delay: object) -> None:
    assert to_come(planned([{"trial": "t000", "delay": delay}])) == [("uid-of-workflow.sweep.t000", 0.0)]
