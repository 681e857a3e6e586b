"""The program of a try-out's pod, run as the pod runs it."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hera_specon.doctor.tryout.workflow import program_text
from tests.hera_specon.doctor.fake_cluster import mlflow


def run(folder: Path, *, mlflow: bool = False, **environment: str) -> dict[str, Any]:
    order = {"report": str(folder / "report"), "within_s": 20, "hold_s": 0, "mlflow": mlflow}
    command = [sys.executable, "-c", program_text(), json.dumps(order)]
    given = {"PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    subprocess.run(command, env={**given, **environment}, cwd=folder, check=True, timeout=60)
    text = (folder / "report").read_text()
    assert len(text) <= 4096
    found: dict[str, Any] = json.loads(text)
    return found


def test_an_older_python_reads_it_and_it_needs_no_library() -> None:
    tree = ast.parse(program_text(), feature_version=(3, 8))
    tops = [name for node in tree.body if isinstance(node, ast.Import) for name in node.names]
    froms = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    roots = {name.partition(".")[0] for name in (*(one.name for one in tops), *froms)}
    assert roots <= set(sys.stdlib_module_names)


def test_a_folder_is_written_to_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    found = run(tmp_path, SPECON_STATE_ROOT=str(tmp_path / "state"))
    assert found["state"]["whole"] is True
    assert found["state"]["free"] > 0
    assert not list((tmp_path / "state").iterdir())
    assert (found["self"]["user"], found["self"]["closed"]) == (os.getuid(), [])


def test_a_store_is_tried_with_the_hooks_of_the_image(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    found = run(tmp_path, SPECON_STATE_STORE=f"file://{tmp_path}/store", PYTHONPATH=str(Path(__file__).parents[4]))
    assert found["state"] == {"where": f"file://{tmp_path}/store", "conditional": True, "whole": True}


def test_an_image_without_the_hooks_says_so(tmp_path: Path) -> None:
    order = {"report": str(tmp_path / "report"), "within_s": 20, "hold_s": 0, "mlflow": False}
    # Without installed packages, as in a plain image.
    command = [sys.executable, "-I", "-S", "-c", program_text(), json.dumps(order)]
    subprocess.run(command, env={"SPECON_STATE_STORE": "s3://b/p"}, cwd=tmp_path, check=True, timeout=60)
    found = json.loads((tmp_path / "report").read_text())
    assert "mlflow_hooks" in found["state"]["hooks"]
    assert found["self"]["hooks"] == ""


def test_artifacts_of_mlflow_are_looked_for_where_they_keep_checkpoints(tmp_path: Path) -> None:
    with mlflow() as address:
        found = run(tmp_path, mlflow=True, MLFLOW_TRACKING_URI=address, SPECON_STATE_STORE="mlflow")["mlflow"]
    assert (found["status"], found["login"], found["artifacts"]) == (200, 200, 200)
    assert found["version"] == "3.17.0"


def test_what_hangs_is_not_waited_for(tmp_path: Path) -> None:
    text = program_text().replace("def try_folder", "def try_folder(root): time.sleep(600)\n\n\ndef unused")
    order = {"report": str(tmp_path / "report"), "within_s": 1, "hold_s": 0, "mlflow": False}
    given = {"SPECON_STATE_ROOT": str(tmp_path), "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", text, json.dumps(order)], env=given, check=True, timeout=60)
    assert json.loads((tmp_path / "report").read_text())["state"] == {"error": "no answer within 1 s"}
    assert time.monotonic() - began < 50
