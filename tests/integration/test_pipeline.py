"""Pipelines on this machine whose later steps use what a sweep came to."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.integration.workbench import ROOT, Workbench

pytestmark = pytest.mark.slow

TRAIN = """
import sys

rate = float(sys.argv[1].partition("=")[2])
if rate == 1:
    sys.exit("out of luck")
for epoch in range(3):
    print(f"loss: {10 * rate - epoch if rate < 4 else 'nan'}")
"""
PRINTED = """
from hera.workflows import Container, Parameter, Steps, Workflow
from hera.workflows.models import ContinueOn
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="printed-", entrypoint="main") as w:
    search = Sweep(
        name="search",
        image="any",
        command=["python", "train.py"],
        space={{"rate": choice(1, 2, 3, 4)}},
        search="grid",
        objective=minimize("loss"),
        retries=0,
        state_root="/mnt/specon",
    )
    use = Container(
        name="use",
        image="any",
        command=["python", "use.py"],
        args=["{{{{inputs.parameters.file}}}}", "{{{{inputs.parameters.text}}}}"],
        inputs=[Parameter(name="file"), Parameter(name="text")],
    )
    with Steps(name="main"):
        search(continue_on=ContinueOn(failed=True))
        best = search.best
        for name in ("params", "value", "run_id", "checkpoint", "trials"):
            use(name=name.replace("_", "-"), arguments={{"file": name, "text": getattr(best, name)}})
        use(name="rate", arguments={{"file": "rate", "text": best.params["rate"]}})
        use(
            name="each",
            arguments={{"file": "top-{{{{item.trial}}}}", "text": "{{{{item.param-rate}}}}"}},
            with_param=search.top(3),
        )
"""
USE = "import sys, pathlib\npathlib.Path('used', sys.argv[1]).write_text(sys.argv[2])\n"


def rows(bench: Workbench, question: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(bench.folder / ".specon" / "mlflow" / "mlflow.db") as database:
        found: list[tuple[Any, ...]] = database.execute(question).fetchall()
    return found


def test_the_example_trains_the_best_of_its_sweep_again_and_registers_it(workbench: Workbench) -> None:
    done = workbench.run("run", str(ROOT / "workflows" / "pipeline.py"), "--plain", "--json", "out.json", within_s=400)
    assert done.code == 0, done.output
    (told,) = json.loads((workbench.folder / "out.json").read_text())["runs"]
    best = next(trial for trial in told["trials"] if trial["id"] == told["best"]["search"])
    ((run, validation_loss),) = rows(
        workbench,
        "SELECT v.run_id, t.value FROM model_versions v JOIN model_version_tags t ON t.name = v.name "
        "WHERE v.name = 'digits' AND t.key = 'validation_loss'",
    )
    params: dict[str, str] = dict(rows(workbench, f"SELECT key, value FROM params WHERE run_uuid = '{run}'"))  # noqa: S608 - our own
    assert {name: float(value) for name, value in params.items()} == best["params"]
    assert float(validation_loss) == pytest.approx(best["final_metric"], rel=1e-5)
    assert rows(workbench, "SELECT alias, version FROM registered_model_aliases") == [("candidate", 1)]


def test_trials_that_only_print_fail_or_diverge_are_told_rightly_to_the_steps_after_them(workbench: Workbench) -> None:
    (workbench.folder / "used").mkdir()
    for name, text in {"train.py": TRAIN, "use.py": USE, "sweep.py": PRINTED.format()}.items():
        (workbench.folder / name).write_text(text)
    done = workbench.run("run", "sweep.py", "--plain", within_s=400)
    assert (done.code, "search.t000 failed" in done.output) == (1, True), done.output
    used = {path.name: path.read_text() for path in (workbench.folder / "used").iterdir()}
    assert (used["rate"], json.loads(used["params"]), used["value"]) == ("2", {"rate": 2}, "18.0")
    assert {name: text for name, text in used.items() if name.startswith("top")} == {"top-t001": "2", "top-t002": "3"}
    assert {trial["trial"]: trial["outcome"] for trial in json.loads(used["trials"])} == {
        "t001": "succeeded",
        "t002": "succeeded",
        "t000": "failed",
        "t003": "diverged",
    }
    ((trial,),) = rows(
        workbench,
        f"SELECT value FROM tags WHERE key = 'specon.trial_id' AND run_uuid = '{used['run_id']}'",  # noqa: S608 - ours
    )
    assert trial == f"{workbench.uid}.search.t001"
    assert Path(used["checkpoint"]).parent.name == trial
