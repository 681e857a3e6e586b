"""A real MLflow store in a file of its own."""

import pytest
from mlflow.tracking import MlflowClient


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> MlflowClient:
    """A client of an SQLite store."""
    return MlflowClient(f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}")
