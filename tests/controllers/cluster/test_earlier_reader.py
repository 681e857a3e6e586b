"""What a campaign learns from earlier sweeps: read beside the loop, once, and done without where MLflow is away."""

import itertools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.cluster.earlier_reader import EarlierReader
from controllers.core.actions import Place
from controllers.core.after_sweeps import AfterSweeps
from controllers.core.model import TrialId
from controllers.search import Dimension, NumberRange, SearchSpec
from mlflow_hooks import contract
from tests.controllers.cluster.clusters_in_memory import campaign, gated
from tests.controllers.cluster.conftest import Stage

SPEC = SearchSpec(sampler="tpe", seed=1, space=(Dimension(name="x", domain=NumberRange(low=-10, high=10)),))
AFTER = AfterSweeps(("before.vae",), "loss", search=SPEC.written())


def train_before(client: MlflowClient, sweep: str, began: float) -> None:
    """Let an earlier sweep have trained, whose best is at x = 4."""
    known = client.get_experiment_by_name("controller-tests")
    where = known.experiment_id if known else client.create_experiment("controller-tests")
    for number, x in enumerate(range(-10, 11)):
        tags = {contract.TAG_SWEEP_ID: sweep, contract.TAG_TRIAL_ID: f"{sweep}.t{number:03}"}
        run = client.create_run(where, tags=tags, start_time=int(began * 1000)).info.run_id
        client.log_param(run, "x", float(x))
        client.log_batch(run, metrics=[Metric("loss", float((x - 4) ** 2), int(began * 1000), 1)])
        client.set_terminated(run, "FINISHED", int(began * 1000) + 500)


def test_a_search_of_a_cluster_begins_with_what_an_earlier_sweep_showed(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    it = stage()
    train_before(it.client, f"{it.uid}before.vae", it.campaign.created_epoch_s - 1000)
    after = replace(AFTER, names=(f"{it.uid}before.vae",))
    trials = [TrialId(f"{it.sweep}.t{number:03}") for number in range(3)]
    it.world.now = {name: replace(gated(name), search=SPEC.written(), sweep="vae") for name in trials}
    it.campaign = replace(it.campaign, after={"vae": after})
    run = it.start()

    def placed() -> dict[TrialId, float]:
        return {one.trial: float(dict(one.point)["x"]) for one in it.world.done if isinstance(one, Place)}

    it.step_until(run, lambda: len(placed()) == 3)
    assert sum(abs(x - 4) for x in placed().values()) / 3 < 4
    line = "sweep vae: learnt before: 21 trials of earlier sweeps (17 min old), the search takes 21"
    assert any(record.getMessage().startswith(line) for record in caplog.records)


def reader(client: object, lines: list[str], clock: Callable[[], float] = lambda: 0.0, **changes: Any) -> EarlierReader:  # noqa: ANN401 - of a campaign
    now = replace(campaign("new", sweeps={"new.vae": "e"}), **{"after": {"vae": AFTER}, **changes})
    return EarlierReader(client, lambda: now, lines.append, clock)  # type: ignore[arg-type]


class Away:
    tracking_uri = "sqlite://"

    def __init__(self) -> None:
        self.asked = 0

    def search_experiments(self, **_: object) -> None:
        self.asked += 1
        message = "away, at http://user:secret@mlflow"
        raise MlflowException(message)


def test_a_sweep_begins_without_once_mlflow_was_away_for_long() -> None:
    lines, client, seconds = list[str](), Away(), itertools.count(step=25)
    it = reader(client, lines, lambda: float(next(seconds)))
    assert it.earlier().pending
    while it.earlier().pending:
        it.poll()
    assert (client.asked, it.news) == (2, True)
    assert lines == ["sweep vae learns nothing from earlier ones: away, at http://***@mlflow"]
    it.poll()
    assert client.asked == 2


def test_a_sweep_that_mlflow_does_not_know_is_told_of_and_hinders_nothing(client: MlflowClient) -> None:
    lines: list[str] = []
    it = reader(client, lines, after={"vae": replace(AFTER, names=("nobody.vae",))})
    it.poll()
    assert not it.earlier().pending
    assert lines[0] == "sweep vae is to learn from 'nobody.vae'; MLflow has no such sweep that its namespace may read"
    assert lines[1].startswith("sweep vae: nothing was learnt before")


def test_a_search_that_makes_no_sense_is_told_of_and_hinders_nothing(client: MlflowClient) -> None:
    lines: list[str] = []
    train_before(client, "nonsense.vae", 900.0)
    after = replace(AFTER, names=("nonsense.vae",), search="{")
    it = reader(client, lines, after={"vae": after}, created_epoch_s=2000.0)
    it.poll()
    assert not it.earlier().pending
    assert "cannot read a search" in lines[0]


def test_what_learns_nothing_or_is_over_asks_nothing() -> None:
    for changes in ({"after": {"vae": AfterSweeps()}}, {"finished": True}):
        client = Away()
        it = reader(client, [], **changes)
        it.poll()
        assert (client.asked, it.earlier().pending) == (0, False)
