"""A run that is deleted in MLflow and restored has every point in the end, and is not hammered meanwhile."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mlflow_hooks.delivery import Delivery
from mlflow_hooks.journal import Journal, count_unsent
from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import Identity, write_identity
from mlflow_hooks.tracking_server import REFUSED, TrackingError


class Store:
    """A tracking server with one run, which may be deleted."""

    def __init__(self) -> None:
        self.deleted = False
        self.points: list[Point] = []
        self.requests = 0
        self.params: dict[str, str] = {}
        self.experiments: list[str] = []

    def _ask(self, *, changes: bool) -> None:
        self.requests += 1
        if changes and self.deleted:
            message = "The run must be in the 'active' state. Current state is deleted."
            raise TrackingError(message, REFUSED)

    def experiment(self, name: str) -> str | None:
        self._ask(changes=False)
        self.experiments.append(name)
        return "7"

    def create_experiment(self, name: str) -> str:
        raise AssertionError(name)

    def runs(self, experiment: str, wanted: str, most: int) -> list[str]:
        self._ask(changes=False)
        assert (experiment, most > 0) == ("7", True), wanted
        return ["run"]

    def create_run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        raise AssertionError(experiment, name, tags)

    def delete_run(self, run: str) -> None:
        raise AssertionError(run)

    def is_active(self, run: str) -> bool:
        self._ask(changes=False)
        assert run == "run"
        return not self.deleted

    def artifact_uri(self, run: str) -> str:
        self._ask(changes=False)
        return f"mlflow-artifacts:/0/{run}/artifacts"

    def set_status(self, run: str, status: str, ended_at: int | None = None) -> None:
        self._ask(changes=True)
        assert (run, status, ended_at) == ("run", "RUNNING", None)

    def log_metrics(self, run: str, points: Sequence[Point]) -> None:
        self._ask(changes=True)
        assert run == "run"
        self.points += points

    def newest_points(self, run: str) -> list[Point]:
        assert run == "run"
        return list({point.key: point for point in self.points}.values())

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        self._ask(changes=True)
        assert run == "run"
        self.params.update(params)


def delivery_to(store: Store, folder: Path, params: dict[str, object] | None = None, experiment: str = "e") -> Delivery:
    write_identity(folder, Identity("s.a", "a", experiment, "s", None, params or {}))
    made = Delivery(folder)
    made.server = store
    return made


def steps(*numbers: int) -> list[Point]:
    return [Point("loss", 1.0, number, 1) for number in numbers]


def test_a_run_that_was_deleted_and_restored_gets_the_points_that_it_missed(tmp_path: Path) -> None:
    store = Store()
    delivery, journal = delivery_to(store, tmp_path), Journal(tmp_path)
    journal.append(steps(0, 1))
    delivery.deliver()
    store.deleted = True
    journal.append(steps(*range(2, 252)))
    before = store.requests
    for _ in range(5):
        with pytest.raises(TrackingError, match="restore it"):
            delivery.deliver()
    assert store.requests - before <= 10
    assert count_unsent(tmp_path) == 250
    store.deleted = False
    delivery.deliver()
    assert [point.step for point in store.points] == list(range(252))
    assert count_unsent(tmp_path) == 0
    journal.close()


def test_names_that_are_no_text_hold_up_no_delivery(tmp_path: Path) -> None:
    store = Store()
    delivery, journal = delivery_to(store, tmp_path, {"lr\udcff": "\udcfe"}, "e\udcff"), Journal(tmp_path)
    journal.append(steps(0))
    delivery.deliver()
    assert store.params == {"lr?": "?"}
    assert store.experiments == ["e?"]
    assert len(store.points) == 1
    journal.close()
