"""Small objects that unpack, expand or parse to something huge take little memory, and are said to be left out."""

import base64
import gzip
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from controllers.worlds.argo.calls.untrusted import PackedError, TooManyPartsError, gunzipped, parsed
from controllers.worlds.argo.reading.definitions import _warned
from controllers.worlds.argo.reading.watch import Collection, _Records
from controllers.worlds.argo.reading.workflows import record_of
from controllers.worlds.argo.writing.state_store import _unpacked
from tests.controllers.worlds.argo.objects import template, workflow

MIB = 2**20
MOST_MIB = 128


def packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()


def peak_mib(work: Callable[[], Any]) -> float:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "nodes",
    [
        '{"a":"' + "x" * 120 * MIB + '"}',
        "[" + "[]," * 20_000_000 + "[]]",
        "{" + ",".join(f'"{n}":{{}}' for n in range(250_000)) + "}",
        "[" * 1_000_000,
    ],
    ids=["one long text", "empty lists", "empty nodes", "nested"],
)
def test_packed_nodes_of_a_workflow_unpack_only_so_far(nodes: str) -> None:
    hostile = workflow()
    hostile["status"]["compressedNodes"] = packed(nodes)
    assert len(hostile["status"]["compressedNodes"]) < MIB
    found: list[Any] = []
    assert peak_mib(lambda: found.append(record_of(hostile))) < MOST_MIB
    assert not found[0].steps


def test_a_text_full_of_placeholders_does_not_grow_beyond_what_is_read() -> None:
    hostile = template("a")
    hostile["container"]["env"] += [{"name": f"E{n}", "value": "{{inputs.parameters.p}}" * 2000} for n in range(20)]
    step = {
        "id": "s", "name": "wf[0].a", "type": "Retry", "templateName": "a", "phase": "Running",
        "inputs": {"parameters": [{"name": "p", "value": "x" * 8000}]},
    }  # fmt: skip
    assert peak_mib(lambda: record_of(workflow({"s": step}, templates=[hostile]))) < 16


def test_an_ordinary_workflow_of_five_thousand_trials_is_read_whole() -> None:
    nodes = {}
    for number in range(5000):
        nodes[f"s{number}"] = {
            "id": f"s{number}", "name": f"wf[0].a({number}:x)", "displayName": "a", "type": "Retry",
            "templateName": "a", "phase": "Running", "boundaryID": "wf",
            "startedAt": "2026-11-03T14:32:10Z", "progress": "0/1",
            "inputs": {"parameters": [{"name": name, "value": "1"} for name in ("trial", "params", "lr", "width")]},
            "children": [f"s{number}-0"], "templateScope": "local/wf", "resourcesDuration": {"cpu": 1, "memory": 2},
        }  # fmt: skip
    big = workflow(nodes, packed=True)
    record = record_of(big)
    assert record is not None
    assert len(record.steps) == 5000


def test_a_state_that_unpacks_to_too_much_counts_as_none() -> None:
    found: list[Any] = []
    hostile = packed(
        '{"policy":"x","decisions":"","progress":{' + ",".join(f'"{n}":1' for n in range(4_000_000)) + "}}"
    )
    assert peak_mib(lambda: found.append(_unpacked(hostile, "state"))) < MOST_MIB
    assert found == [None]


def test_json_of_many_small_values_is_refused_before_it_is_read() -> None:
    assert parsed(b'{"a": [1, 2]}', 10) == {"a": [1, 2]}
    with pytest.raises(TooManyPartsError):
        parsed("[[],[],[]]", 5)


def test_the_objects_of_one_namespace_leave_room_for_the_others() -> None:
    records = _Records[int](Collection("/things", most=10), lambda record: record)
    for number in range(5):
        records.put("greedy", f"o{number}", 4)
    records.put("modest", "o", 4)
    assert sorted(records.all()) == [4, 4, 4]
    records.put("greedy", "o0", None)
    records.put("greedy", "o1", 1)
    records.put("greedy", "o9", 5)
    assert sorted(records.all()) == [1, 4, 5]
    assert json.dumps(records.all())


def expanding(number: int) -> dict[str, Any]:
    """A small step whose definition is a long one."""
    return {
        "id": f"s{number}", "name": f"wf[0].a({number})", "type": "Retry", "templateName": "a", "phase": "Running",
        "inputs": {"parameters": [{"name": "n", "value": str(number)}, {"name": "p", "value": "x" * 100}]},
    }  # fmt: skip


def test_thousands_of_small_steps_that_stand_for_long_texts_are_read_as_far_as_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _warned.clear()
    hostile = template("a")
    hostile["container"]["env"] = [
        {"name": "SPECON_TRIAL_ID", "value": "{{workflow.uid}}.sweep.t{{inputs.parameters.n}}"},
        {"name": "SPECON_TRIAL_PARAMS", "value": "{{inputs.parameters.p}}" * 160},
    ]
    nodes = {f"s{number}": expanding(number) for number in range(20_000)}
    found: list[Any] = []
    assert peak_mib(lambda: found.append(record_of(workflow(nodes, packed=True, templates=[hostile])))) < MOST_MIB
    assert 0 < len(found[0].steps) < 2_000
    assert "sweeps/sweep-x" in caplog.text
    assert found[0].weight > 16_000


def test_one_wide_character_does_not_make_four_times_the_memory_of_a_text() -> None:
    with pytest.raises(PackedError, match="more than 1048576 bytes"):
        gunzipped(packed("x" * (MIB // 2) + "\N{GRINNING FACE}"), MIB)
    assert len(gunzipped(packed("x" * (MIB // 2)), MIB)) == MIB // 2


def test_thousands_of_annotations_that_stand_for_long_texts_are_not_filled_in() -> None:
    hostile = template("a")
    notes = {f"hera-specon.io/n{number}": "{{inputs.parameters.p}}" * 2 for number in range(20_000)}
    hostile["metadata"]["annotations"] |= notes
    step = {
        "id": "s", "name": "wf[0].a", "type": "Retry", "templateName": "a", "phase": "Running",
        "inputs": {"parameters": [{"name": "p", "value": "x" * 8000}]},
    }  # fmt: skip
    found: list[Any] = []
    assert peak_mib(lambda: found.append(record_of(workflow({"s": step}, templates=[hostile])))) < 16
    assert len(found[0].steps) == 1
