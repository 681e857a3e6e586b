"""Kubernetes Events on pods."""

import pytest

from controllers.worlds.argo.reading.pods import PodRecord, project_pod
from controllers.worlds.argo.writing import events as events_module
from controllers.worlds.argo.writing.events import EventWriter
from tests.controllers.worlds.argo.conftest import eventually
from tests.controllers.worlds.argo.fake_api import FakeApi, Json
from tests.controllers.worlds.argo.objects import pod


def record() -> PodRecord:
    found = project_pod(pod(on="n1", uid="u"))
    assert found is not None
    return found


def written(fake: FakeApi) -> list[Json]:
    return list(fake.store.objects["events"].values())


def test_an_event_names_the_pod_the_reason_and_who_reports(fake: FakeApi) -> None:
    events = EventWriter(fake.client())
    events.tell(record(), "Moving", "asked to leave n1 for n2")
    events.close()
    (event,) = written(fake)
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "sweeps",
        "name": "sweep-x-a-0",
        "uid": "u",
    }
    assert (event["reason"], event["type"]) == ("Moving", "Normal")
    assert event["reportingController"] == "hera-specon.io/controller"


def test_what_is_told_again_is_counted(fake: FakeApi) -> None:
    events = EventWriter(fake.client())
    for _ in range(3):
        events.tell(record(), "ResizeFailed", "no room", warning=True)
    events.tell(record(), "ResizeFailed", "something else", warning=True)
    events.close()
    assert [event.get("series", {}).get("count") for event in written(fake)] == [3, None]


def test_an_event_that_has_expired_is_written_anew(fake: FakeApi) -> None:
    events = EventWriter(fake.client())
    events.tell(record(), "Moved", "x")
    eventually(lambda: written(fake))
    fake.store.drop("events", f"sweeps/{written(fake)[0]['metadata']['name']}")
    events.tell(record(), "Moved", "x")
    events.close()
    assert len(written(fake)) == 1


def test_events_that_may_not_be_written_are_dropped(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "_WAITING", 10)
    fake.fault = lambda _: (403, "no")
    events = EventWriter(fake.client())
    for number in range(200):
        events.tell(record(), "Moved", str(number))
    events.close()
    assert written(fake) == []
