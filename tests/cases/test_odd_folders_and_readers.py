"""A whole sweep in folders whose names mean something in a URI, whose reader leaves after a line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from controllers.worlds.local.serve_mlflow import artifacts_uri, database_uri

ROOT = Path(__file__).parents[2]
ODD = "a b?c=1&d#e%20f é"
SWEEP = """
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize, tpe
with Workflow(generate_name="s-", entrypoint="s") as w:
    Sweep(
        name="s", image="x", command=["python", "tr ain%20?.py"], objective=minimize("loss"), retries=0,
        space={"use-bias": choice(True, False), "hidden": choice("64 64", "8")}, search=tpe(), trials=3,
        flags={"use-bias": "--use-bias", "hidden": ["--hidden", "{*}"]},
    )
"""
TRAIN = """
import argparse
from mlflow_hooks import trial
p = argparse.ArgumentParser()
p.add_argument("--use-bias", action="store_true")
p.add_argument("--hidden", type=int, nargs="+", required=True)
a = p.parse_args()
with trial() as t:
    assert t.params["use-bias"] is a.use_bias and t.params["hidden"].split() == [str(one) for one in a.hidden]
    for step in t.steps(2):
        t.log(loss=sum(a.hidden) + a.use_bias)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_in_odd_folders_goes_on_without_a_reader_and_leaves_nothing_beside_them(tmp_path: Path) -> None:
    here = tmp_path / ODD
    here.mkdir()
    (here / "sw eep?#%20.py").write_text(SWEEP)
    (here / "tr ain%20?.py").write_text(TRAIN)
    command = '"$0" -m hera_specon.cli run "sw eep?#%20.py" --plain --nodes 1 --cpus-per-node 0.8 --state-dir "$1"'
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MLFLOW_")}
    ended = subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {command} | head -1", sys.executable, f"st {ODD}"],
        cwd=here,
        env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr.count("the sweep goes on") == 1
    assert "Traceback" not in ended.stderr
    (run,) = (here / f"st {ODD}" / "runs").iterdir()
    (result,) = run.rglob("result.json")
    assert [trial["succeeded"] for trial in json.loads(result.read_text())["trials"]] == [True] * 3
    assert (run / "report.html").is_file()
    assert (here / f"st {ODD}" / "mlflow" / "mlflow.db").is_file()
    assert {one.name for one in here.iterdir()} <= {"sw eep?#%20.py", "tr ain%20?.py", f"st {ODD}"}
    assert [one.name for one in tmp_path.iterdir()] == [ODD]


def test_the_uris_of_a_folder_name_that_folder_whatever_it_is_called(tmp_path: Path) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    for name in (ODD, "plain", "with space"):
        folder = tmp_path / name
        folder.mkdir()
        with sqlalchemy.create_engine(database_uri(folder)).connect() as connection:
            connection.execute(sqlalchemy.text("create table t (x int)"))
            connection.commit()
        assert (folder / "mlflow.db").stat().st_size
    assert artifacts_uri(tmp_path / "plain") == str(tmp_path / "plain" / "artifacts")
    assert "%3F" in artifacts_uri(tmp_path / ODD)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([ODD, "plain", "with space"])
