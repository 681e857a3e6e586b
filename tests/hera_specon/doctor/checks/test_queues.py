from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core.kueue import LABEL_GROUP, LABEL_QUEUE
from hera_specon.doctor.checks.queues import check_queues
from hera_specon.doctor.facts import Listing, QueueFacts, Unread, Why
from hera_specon.doctor.sweep_needs import sweep_needs
from tests.hera_specon.built_sweeps import sweep

QUEUE: dict[str, Any] = {"metadata": {"name": "team"}}
DEFAULT: dict[str, Any] = {"metadata": {"name": "default"}}
NONE = Unread(Why.MISSING, "404")
IN_QUEUE = {LABEL_QUEUE: "team"}


@pytest.mark.parametrize(
    ("labels", "queues", "verdict", "words"),
    [
        ({}, NONE, "ok", "not installed"),
        ({}, Unread(Why.FORBIDDEN, "403"), "cannot tell", "may not"),
        ({}, [], "ok", "no queue"),
        ({}, [QUEUE], "ok", "left alone"),
        ({}, [QUEUE, DEFAULT], "warning", "default queue"),
        (IN_QUEUE, [QUEUE], "warning", "'team': Kueue deletes a pod that is resized"),
        (IN_QUEUE, NONE, "warning", "'team'"),
        ({**IN_QUEUE, LABEL_GROUP: "{{pod.name}}"}, [QUEUE], "ok", "survives a resize"),
    ],
)
def test_what_kueue_does_to_pods(labels: dict[str, str], queues: Listing, verdict: str, words: str) -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep()
    manifest = w.to_dict()
    for template in manifest["spec"]["templates"]:
        template.get("metadata", {}).get("labels", {}).update(labels)
    (finding,) = check_queues(QueueFacts(name="lab", queues=queues), sweep_needs(manifest))
    assert finding.verdict == verdict
    assert words in finding.found
    assert finding.advice or verdict == "ok"
