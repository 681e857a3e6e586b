"""How long ``specon run`` takes until its first trial begins, with an MLflow of its own.

    python -m benchmarks.start_of_a_run [--runs 3]

The first run in an empty folder makes MLflow's database; those after it find it there.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

_SWEEP: Final = """
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="start-", entrypoint="start") as w:
    Sweep(name="start", image="any", command=["python", "trial.py"], space={"x": choice(1)}, search="grid",
          objective=minimize("loss"))
"""
_TRIAL: Final = """
import time
from pathlib import Path

Path("began").write_text(str(time.time()))
from mlflow_hooks import trial

with trial() as t:
    for step in t.steps(1):
        t.log(loss=1.0)
"""


def seconds_to_first_trial(folder: Path) -> float:
    """Run the sweep in ``folder`` and return the seconds from the command to the first line of its trial."""
    command = [sys.executable, "-m", "hera_specon.cli", "run", "sweep.py", "--policy", "default", "--fresh"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    began = time.time()
    subprocess.run([*command, "--nodes", "1"], cwd=folder, env=kept, check=True, capture_output=True)
    return float((folder / "began").read_text()) - began


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "sweep.py").write_text(_SWEEP)
        (folder / "trial.py").write_text(_TRIAL)
        load = os.getloadavg()[0]
        first, *later = [seconds_to_first_trial(folder) for _ in range(runs + 1)]
    table = Table("start", "seconds to the first trial", title=f"{os.cpu_count()} cores, load {load:.1f} before")
    table.add_row("in an empty folder", f"{first:.1f}")
    table.add_row("after that, median", f"{statistics.median(later):.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
