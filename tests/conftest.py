"""What all tests share."""

import contextlib
import importlib

import pytest
from hypothesis import settings
from mlflow.tracking import MlflowClient

pytest_plugins = ["tests.cluster.fixtures"]

# How long an example takes says something of the machine, and nothing of what is tested.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> MlflowClient:
    """A client of a real MLflow store in an SQLite file of its own."""
    return MlflowClient(f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Import PyTorch's compiler first where TensorFlow will be imported too.

    Both bring an LLVM; with TensorFlow's there first, the other one aborts the process.
    """
    if any(item.get_closest_marker("tensorflow") for item in items):
        with contextlib.suppress(ImportError):
            importlib.import_module("torch._dynamo")
