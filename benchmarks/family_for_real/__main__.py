"""The family's policies for real: sweeps on this machine, and each paper's own measure of what became of them.

    python -m benchmarks.family_for_real [deadlines targets ...] [--seeds 2] [--out FOLDER]

Every sweep trains PyTorch models on slices of this machine, under each policy after the other, and all from the same
placement but those that place trials. It needs a quiet machine: "cores used" tells what trials got, and "CPU s" what
they needed, which is the same under every policy unless something else was in the caches.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.family_for_real.comparisons import COMPARISONS, Comparison
from benchmarks.family_for_real.measures import Measured, measured

_SEED: Final = "SWEEP_SEED"
_OUT: Final = Path(".specon") / "family-for-real"


def run(comparison: Comparison, seed: int, state_dir: Path) -> list[Measured]:
    """Run one comparison with one seed, and measure."""
    command = [sys.executable, "-m", "hera_specon.cli", "run", str(comparison.file), "--fresh", "--plain"]
    command += ["--cpus-per-node", comparison.cores, "--nodes", str(comparison.nodes)]
    command += ["--seed", str(seed), "--state-dir", str(state_dir)]
    for policy in comparison.policies:
        command += ["--policy", policy]
    subprocess.run(command, check=True, env={**os.environ, _SEED: str(seed)})
    folder = max((state_dir / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    return measured(folder)


def table(comparison: Comparison, runs: list[list[Measured]], first_seed: int) -> Table:
    """Return a row for each policy and seed."""
    title = f"{comparison.name}: {comparison.nodes} nodes of {comparison.cores} cores"
    drawn = Table("policy", "seed", *comparison.columns, title=title, title_justify="left")
    for place in range(len(comparison.policies)):
        for seed, of_seed in enumerate(runs, start=first_seed):
            told = of_seed[place].told(of_seed[0])
            drawn.add_row(of_seed[place].policy, str(seed), *(told[column] for column in comparison.columns))
        drawn.add_section()
    return drawn


def main() -> None:
    """Run what is asked for, and print and keep it after each sweep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(COMPARISONS), help=", ".join(COMPARISONS))
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--first-seed", type=int, default=1, help="to add to an earlier measurement")
    parser.add_argument("--out", type=Path, default=_OUT, help="folder for runs and figures")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(COMPARISONS)):
        parser.error(f"{unknown[0]!r} is none of {', '.join(COMPARISONS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    runs: dict[str, list[list[Measured]]] = {name: [] for name in given.names}
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for name in given.names:
            runs[name].append(run(COMPARISONS[name], seed, given.out))
            figures = {one: [[asdict(of) for of in of_seed] for of_seed in seeds] for one, seeds in runs.items()}
            (given.out / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
            Console(width=140).print(table(COMPARISONS[name], runs[name], given.first_seed))


if __name__ == "__main__":
    main()
