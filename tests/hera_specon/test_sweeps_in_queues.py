"""Sweeps whose trials wait in a Kueue queue."""

import json
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core.kueue import ANNOTATION_GROUP_SIZE, ANNOTATION_RETRIABLE, LABEL_GROUP, LABEL_QUEUE
from controllers.worlds.local.workflow import read_workflow
from hera_specon.errors import SweepError
from tests.hera_specon.built_sweeps import built, sweep

GROUP = {LABEL_QUEUE: "team-a", LABEL_GROUP: "{{pod.name}}"}
NOTES = {ANNOTATION_GROUP_SIZE: "1", ANNOTATION_RETRIABLE: "false"}


def metadata(**settings: object) -> dict[str, Any]:
    found: dict[str, Any] = built(**settings)["vae-trial"]["metadata"]
    return found


@pytest.mark.parametrize("settings", [{"queue": "team-a"}, {"labels": {LABEL_QUEUE: "team-a"}}])
def test_each_pod_of_a_sweep_in_a_queue_is_a_group_of_one(settings: dict[str, Any]) -> None:
    found = metadata(**settings)
    assert found["labels"].items() >= GROUP.items()
    assert found["annotations"].items() >= NOTES.items()


def test_a_group_that_its_author_names_stays_as_it_is() -> None:
    found = metadata(labels={LABEL_QUEUE: "team-a", LABEL_GROUP: "g"})
    assert found["labels"][LABEL_GROUP] == "g"
    assert not NOTES.keys() & found["annotations"].keys()


def test_without_a_queue_a_manifest_knows_nothing_of_kueue() -> None:
    assert "kueue" not in json.dumps(built())


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"queue": "Team A"}, "LocalQueue"),
        ({"queue": "x" * 64}, "LocalQueue"),
        ({"queue": "a", "labels": {LABEL_QUEUE: "b"}}, "both name a queue"),
        ({"queue": "a", "workers": 2}, "several workers"),
        ({"queue": "a", "workers": (1, 2)}, "several workers"),
        ({"queue": "a", "labels": {LABEL_GROUP: "g"}}, "labels="),
        ({"queue": "a", "annotations": {ANNOTATION_GROUP_SIZE: "2"}}, "annotations="),
    ],
)
def test_what_cannot_wait_in_a_queue_is_refused_by_name(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(SweepError, match=word):
        built(**settings)


def workflow_of(name: str) -> Workflow:
    with Workflow(name=name, entrypoint="vae") as w:
        sweep(queue="team-a")
    return w


def test_pods_whose_names_are_no_names_of_groups_are_refused() -> None:
    """A pod's name is that of its workflow, its template and ten digits; a group's has 63 characters."""
    assert workflow_of("w" * 42).to_dict()
    with pytest.raises(SweepError, match="shorten the name of the workflow or the sweep by 1"):
        workflow_of("w" * 43).to_dict()


def test_on_one_machine_a_sweep_in_a_queue_runs_without_it() -> None:
    with Workflow(generate_name="w-", entrypoint="vae") as w:
        sweep(queue="team-a")
    first = read_workflow(w.to_dict(), "w-x1", "uid-1", {}).trials()[0].step
    assert not any("kueue" in name for name in (*first.labels, *first.annotations))
