"""A controller runs for weeks beside others: what it never uses, it does not load."""

import subprocess
import sys

import pytest

_CONTROLLER = """
import sys
import hera_specon.cli.controller
from controllers.tracking.access import import_slim
import_slim()
import controllers.cluster.run
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
_AFTERWARDS = """
from controllers.tracking.access import import_slim
import_slim()
import pandas
print(pandas.DataFrame({"loss": [1.5]})["loss"].sum())
"""
_TOO_LATE = """
import pandas
from controllers.tracking.access import import_slim
import_slim()
import mlflow.data
print(hasattr(mlflow.data, "from_pandas"))
"""


def _printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def imported() -> frozenset[str]:
    return frozenset(_printed(_CONTROLLER).split())


def test_the_controller_has_mlflow_and_kubernetes(imported: frozenset[str]) -> None:
    assert {"mlflow", "kubernetes"} <= imported


@pytest.mark.parametrize("library", ["hera", "jinja2", "numpy", "pandas", "plotly", "pyarrow", "scipy", "torch"])
def test_the_controller_does_not_load(library: str, imported: frozenset[str]) -> None:
    assert library not in imported


def test_what_was_left_out_of_mlflow_can_be_imported_afterwards() -> None:
    assert _printed(_AFTERWARDS) == "1.5"


def test_nothing_is_left_out_where_it_is_loaded_already() -> None:
    assert _printed(_TOO_LATE) == "True"
