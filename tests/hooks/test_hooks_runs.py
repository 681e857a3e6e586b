from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run

from mlflow_hooks import contract
from mlflow_hooks.delivery import open_run
from mlflow_hooks.state_folder import Identity
from tests.hooks.hook_jobs import Server


class TwiceHeard(MlflowClient):
    """A client whose request to create a run is sent again, because the server's first answer got lost."""

    def create_run(self, *arguments: object, **more: object) -> Run:
        super().create_run(*arguments, **more)  # type: ignore[arg-type]
        return super().create_run(*arguments, **more)  # type: ignore[arg-type]


def test_a_trial_has_one_run_though_its_creation_was_heard_twice(mlflow_server: Server, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    client = TwiceHeard(mlflow_server.uri)
    identity = Identity("s.twice", "twice", "heard-twice", "s", None, {"lr": 0.1})
    opened = open_run(client, tmp_path, identity)
    experiment = client.get_experiment_by_name("heard-twice")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id], f"tags.`{contract.TAG_TRIAL_ID}` = 's.twice'")
    assert [run.info.run_id for run in found] == [opened]
    assert found[0].data.params == {"lr": "0.1"}
    assert open_run(client, elsewhere, identity) == opened
