"""Metrics: named as Prometheus' own rules ask, without labels whose number has no bound."""

import re
import urllib.request
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controllers.cluster.health import PortError
from controllers.cluster.instruments import Instruments, MetricsServer
from controllers.core.model import Phase

BOUNDED = {"phase", "kind", "outcome", "le"}
WANTED = {
    "specon_ticks_total",
    "specon_tick_duration_seconds_bucket",
    "specon_trials",
    "specon_actions_total",
    "specon_moves_in_progress",
    "specon_is_leader",
    "specon_watch_age_seconds",
    "specon_mlflow_up",
    "specon_campaign_errors_total",
}


def collected(instruments: Instruments) -> list[tuple[str, str, str, set[str]]]:
    return [
        (sample.name, family.type, family.documentation, set(sample.labels))
        for family in instruments.registry.collect()
        if family.name.startswith("specon_")
        for sample in family.samples
    ]


def test_every_name_says_its_unit_and_every_label_has_few_values() -> None:
    samples = collected(Instruments())
    assert {name for name, *_ in samples} >= WANTED
    for name, kind, documentation, labels in samples:
        assert re.fullmatch(r"specon_[a-z]+(_[a-z]+)*", name)
        assert documentation.endswith(".")
        assert labels <= BOUNDED, name
        assert (kind == "counter") == name.endswith(("_total", "_created")) or kind == "histogram"


def test_every_phase_is_shown_also_those_without_trials() -> None:
    instruments = Instruments()
    instruments.show_trials(Counter({Phase.RUNNING: 3, Phase.MOVING: 1}))
    value = instruments.registry.get_sample_value
    shown = {phase.value: value("specon_trials", {"phase": phase.value}) for phase in Phase}
    assert shown == dict.fromkeys(shown, 0) | {"running": 3, "moving": 1}
    assert shown.keys() >= {"pending", "suspended", "stopped", "succeeded", "failed"}
    assert value("specon_moves_in_progress") == 1


def test_prometheus_can_read_what_is_served_and_a_taken_port_is_named() -> None:
    instruments = Instruments()
    with MetricsServer(0, instruments) as server:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
            families = {f.name for f in text_string_to_metric_families(answer.read().decode())}
        assert {"specon_ticks", "specon_is_leader", "process_resident_memory_bytes"} <= families
        with pytest.raises(PortError, match=str(server.port)):
            MetricsServer(server.port, instruments)
