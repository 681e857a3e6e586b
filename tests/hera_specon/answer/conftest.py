"""A real MLflow server, for the runs that the last step of a sweep reads."""

from tests.mlflow_hooks.one_server import mlflow_server  # noqa: F401 - a fixture
