from collections.abc import Mapping
from pathlib import Path

from mlflow import MlflowClient

from mlflow_hooks import contract
from mlflow_hooks.delivery import open_run
from mlflow_hooks.state_folder import Identity
from mlflow_hooks.tracking_server import RestServer
from tests.mlflow_hooks.hook_jobs import Server


class TwiceHeard(RestServer):
    """A server that hears a request to create a run twice, because its first answer got lost."""

    def create_run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        super().create_run(experiment, name, tags)
        return super().create_run(experiment, name, tags)


def test_a_trial_has_one_run_though_its_creation_was_heard_twice(mlflow_server: Server, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    server, client = TwiceHeard(mlflow_server.uri), MlflowClient(mlflow_server.uri)
    identity = Identity("s.twice", "twice", "heard-twice", "s", None, {"lr": 0.1})
    opened = open_run(server, tmp_path, identity)
    experiment = client.get_experiment_by_name("heard-twice")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id], f"tags.`{contract.TAG_TRIAL_ID}` = 's.twice'")
    assert [run.info.run_id for run in found] == [opened]
    assert found[0].data.params == {"lr": "0.1"}
    assert open_run(server, elsewhere, identity) == opened
