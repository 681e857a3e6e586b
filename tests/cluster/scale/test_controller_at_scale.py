"""The benchmark at scale, small: a real controller steers simulated trials through a real API server."""

from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from benchmarks.scale.measurement import measure
from benchmarks.scale.size import Size
from tests.cluster.requirement import require_a_capable_machine

SMALL = Size(nodes=10, trials=40, sweeps=2, seconds=75.0, report_every=2.0, policy="specon:interval=5+flowcon")


@pytest.mark.cluster
@pytest.mark.scale
@pytest.mark.timeout(600)
def test_simulated_trials_are_resized_and_moved_and_nothing_is_left_behind(tmp_path: Path) -> None:
    require_a_capable_machine()
    with Progress(console=Console(stderr=True)) as progress:
        found = measure(SMALL, progress, logs=tmp_path)
    assert found.ticks > 0
    assert found.actions.get("resize/done", 0) > 0
    assert found.moves_completed >= 1
    assert 1 <= found.moves_told <= found.moves_completed
    assert "MLflow does not answer" not in (tmp_path / "controller.log").read_text()
