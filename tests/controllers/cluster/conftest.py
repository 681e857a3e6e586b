"""A stage for campaigns: one sweep with a real MLflow store and a cluster in memory."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Metric, Run
from mlflow.tracking import MlflowClient

from controllers.cluster import sweep_record
from controllers.cluster.campaign_run import CampaignRun, SharedServices
from controllers.cluster.instruments import Instruments
from controllers.core.model import Phase, TrialId
from controllers.record.timeline import EventKind
from controllers.search import SearchQueue
from controllers.tracking.background import BackgroundReader
from controllers.tracking.tags import TagWriter
from mlflow_hooks import contract
from tests.controllers.cluster.clusters_in_memory import MemoryCluster, MemoryWorld, campaign, trial


@dataclass
class Stage:
    """A campaign of one sweep under a fresh uid, its world, and MLflow."""

    client: MlflowClient
    reader: BackgroundReader
    writer: TagWriter
    searches: SearchQueue
    recommend: bool = False
    policy: str = "default"
    why_no_shares: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)
    instruments: Instruments = field(default_factory=Instruments)
    leading: bool = True
    epoch: Callable[[], float] = time.time
    runs: list[CampaignRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sweep = f"{self.uid}.vae"
        self.trial = TrialId(f"{self.sweep}.t000")
        self.world = MemoryWorld.of(trial(self.trial))
        self.cluster = MemoryCluster(worlds={self.uid: self.world})
        self.campaign = campaign(
            self.uid,
            policy=self.policy,
            created_epoch_s=time.time() - 60,
            sweeps={self.sweep: "controller-tests"},
            annotations=self.annotations,
        )

    def start(self) -> CampaignRun:
        services = SharedServices(
            worlds=self.cluster,
            client=self.client,
            reader=self.reader,
            tags=self.writer,
            searches=self.searches,
            instruments=self.instruments,
            leading=lambda: self.leading,
            epoch=self.epoch,
            interval=0.05,
            recommend=self.recommend,
            why_no_shares=lambda: self.why_no_shares,
        )
        self.runs.append(CampaignRun(self.campaign, services))
        return self.runs[-1]

    def step_until(self, run: CampaignRun, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            run.step(self.campaign)
            if condition():
                return
            time.sleep(0.02)
        raise AssertionError

    def finish(self, run: CampaignRun) -> None:
        self.world.finished = True
        self.world.now = {name: replace(one, phase=Phase.SUCCEEDED) for name, one in self.world.now.items()}
        self.campaign = replace(self.campaign, finished=True)
        self.step_until(run, lambda: run.done)
        run.close()

    def report(self, *losses: float) -> str:
        """Let the trial log, as its hooks would."""
        experiment = self.client.get_experiment_by_name("controller-tests")
        assert experiment is not None
        tags = {contract.TAG_SWEEP_ID: self.sweep, contract.TAG_TRIAL_ID: self.trial}
        run = str(self.client.create_run(experiment.experiment_id, tags=tags).info.run_id)
        at = int(time.time() * 1000)
        points = [Metric("loss", loss, at + step, step) for step, loss in enumerate(losses)]
        self.client.log_batch(run, metrics=[*points, Metric(contract.METRIC_CPU_SECONDS, 3.0, at, 1)])
        return run

    def logs_by_itself(self, loss: float, experiment: str = "controller-tests", attempt: str = "pod-1") -> str:
        """Let the trial's script make a run by MLflow's own library, and log there."""
        found = self.client.get_experiment_by_name(experiment)
        where = found.experiment_id if found else self.client.create_experiment(experiment)
        ours = {contract.TAG_SWEEP_ID: self.sweep, contract.TAG_TRIAL_ID: self.trial, contract.TAG_ATTEMPT: attempt}
        run = str(self.client.create_run(where, tags=ours).info.run_id)
        self.client.log_metric(run, "loss", loss, step=1)
        return run

    def parents(self) -> list[Run]:
        experiment = self.client.get_experiment_by_name("controller-tests")
        if experiment is None:
            return []
        wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{self.sweep}' AND tags.`specon.policy` != ''"
        return list(self.client.search_runs([experiment.experiment_id], wanted))

    def tags(self, run: str) -> dict[str, str]:
        return dict(self.client.get_run(run).data.tags)

    def timeline(self) -> list[dict[str, Any]]:
        (parent,) = self.parents()
        pieces = sorted(item.path for item in self.client.list_artifacts(parent.info.run_id, "timeline"))
        lines = [line for piece in pieces for line in self.artifact(piece).splitlines()]
        return [json.loads(line) for line in lines]

    def is_told(self, kind: EventKind) -> bool:
        return any(event["kind"] == kind.value for event in self.timeline())

    def artifact(self, path: str) -> str:
        """Return the text of an artifact of the parent run."""
        (parent,) = self.parents()
        return Path(self.client.download_artifacts(parent.info.run_id, path)).read_text(encoding="utf-8")


@pytest.fixture
def stage(client: MlflowClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stage]]:
    # A record brings what is new to MLflow every ten seconds; tests need not wait as long.
    monkeypatch.setattr(sweep_record, "_FLUSH_S", 0.2)
    made: list[Stage] = []
    with BackgroundReader(0.05) as reader, TagWriter(client, round_s=0.05) as writer, SearchQueue() as searches:

        def make(**settings: Any) -> Stage:  # noqa: ANN401 - fields of Stage
            made.append(Stage(client, reader, writer, searches, **settings))
            return made[-1]

        yield make
        for one in made:
            for run in one.runs:
                run.close()
