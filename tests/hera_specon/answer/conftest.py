"""A real MLflow server, for the runs that the last step of a sweep reads."""

from tests.mlflow_hooks.conftest import mlflow_server as mlflow_server
