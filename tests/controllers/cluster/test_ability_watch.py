"""The look at what the cluster can do: before anything is steered, seldom afterwards, said once."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controllers.cluster.ability_watch import LOOK_EVERY_S, AbilityWatch
from controllers.cluster.instruments import Instruments
from controllers.core.actions import Resize
from controllers.worlds.argo.calls.errors import UnavailableError
from controllers.worlds.argo.reading.nodes import NodeRecord, project_node
from controllers.worlds.argo.reading.pods import PodRecord, project_pod
from controllers.worlds.argo.reading.versions import Version, version_in
from tests.controllers.worlds.argo import objects


@dataclass
class Cluster:
    """An API server and what its watches show."""

    version: str = "v1.36.2"
    resources: tuple[str, ...] = ("pods", "pods/resize")
    kubelet: str = "v1.36.2"
    argo: Version | None = None
    away: bool = False
    asked: list[str] = field(default_factory=list)

    def get(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        if self.away:
            message = "it does not answer"
            raise UnavailableError(message)
        listed = {"resources": [{"name": name} for name in self.resources]}
        return {"gitVersion": self.version} if path == "/version" else listed

    def nodes(self) -> Sequence[NodeRecord]:
        record = project_node(objects.node("n1"))
        assert record is not None
        return [replace(record, kubelet=version_in(self.kubelet))]

    def trial_pods(self) -> Sequence[PodRecord]:
        record = project_pod(objects.pod(uid="one"))
        return [] if self.argo is None or record is None else [replace(record, argo=self.argo)]


class Bench:
    """A watch over a cluster, and a clock."""

    def __init__(self, cluster: Cluster) -> None:
        self.now = 0.0
        self.cluster = cluster
        self.instruments = Instruments()
        self.watch = AbilityWatch(self.cluster, self.cluster, self.instruments, lambda: self.now)

    def shown(self) -> list[tuple[dict[str, str], float]]:
        families = self.instruments.registry.collect()
        return [
            (sample.labels, sample.value)
            for family in families
            for sample in family.samples
            if sample.name == "specon_cluster_info"
        ]


@pytest.fixture
def bench() -> Bench:
    return Bench(Cluster())


def test_it_is_said_once_and_looked_at_seldom(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench.cluster.argo = Version(4, 0, 7)
    for _ in range(3):
        bench.watch.look()
    assert bench.cluster.asked == ["/version", "/api/v1"]
    bench.now += LOOK_EVERY_S
    bench.watch.look()
    assert len(bench.cluster.asked) == 4
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("the cluster: Kubernetes 1.36.2, Argo 4.0.7; shares change in place; pods with")
    assert bench.shown() == [({"kubernetes": "1.36.2", "argo": "4.0.7", "shares": "yes"}, 1.0)]


def test_an_upgrade_is_noticed_said_and_shown_in_place_of_what_was(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(Cluster("v1.32.9", ("pods",), "v1.32.9"))
    bench.watch.look()
    assert Resize not in bench.watch.found.can
    assert "pods/resize" in caplog.text
    bench.cluster.version, bench.cluster.resources, bench.cluster.kubelet = "v1.33.13", ("pods/resize",), "v1.33.13"
    bench.now += LOOK_EVERY_S
    bench.watch.look()
    assert Resize in bench.watch.found.can
    assert bench.shown() == [({"kubernetes": "1.33.13", "argo": "unknown", "shares": "yes"}, 1.0)]


def test_argos_version_is_looked_for_until_a_pod_tells_it_and_kept_when_all_pods_are_gone(bench: Bench) -> None:
    bench.watch.look()
    assert "Argo of unknown version" in bench.watch.found.line
    bench.cluster.argo = Version(3, 7, 14)
    bench.now += 61
    bench.watch.look()
    assert bench.watch.found.argo == Version(3, 7, 14)
    bench.cluster.argo = None
    bench.now += LOOK_EVERY_S
    bench.watch.look()
    assert bench.watch.found.argo == Version(3, 7, 14)


def test_a_server_that_does_not_answer_takes_nothing_away_and_is_asked_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.cluster.away = True
    bench.watch.look()
    bench.now += 61
    bench.watch.look()
    assert Resize in bench.watch.found.can
    assert caplog.text.count("cannot find out") == 1
    bench.cluster.away = False
    bench.now += 61
    bench.watch.look()
    assert bench.watch.found.kubernetes == Version(1, 36, 2)
