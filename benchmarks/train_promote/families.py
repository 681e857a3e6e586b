"""Families of sweeps: recorded curves and made-up ones, with noise of evaluation where it is asked for."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.train_promote import made_up
from controllers.lab.simulation.experiments.curve_families import TABLE
from controllers.lab.simulation.experiments.curve_sweep import read_curves
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats

FILE: Final = Path(__file__).with_name("families.toml")
RECORDED: Final = Path(__file__).with_name("recorded.npz")
LCBENCH: Final = {"lcbench-accuracy": ("val_accuracy", -1.0), "lcbench-cross-entropy": ("val_cross_entropy", 1.0)}
"""Column of each family, and its sign: smaller is better."""


@dataclass(frozen=True, slots=True)
class Families:
    """Where the curves of LCBench are; without them, its families are left out."""

    lcbench: Path | None = None

    def named(self, purpose: str) -> list[str]:
        """Return the names of the families for ``training`` or for ``judging``."""
        names: list[str] = tomllib.loads(FILE.read_text("utf-8"))[purpose]
        return [name for name in names if self.lcbench or not name.startswith("lcbench")]

    def sweep(self, family: str, number: int, trials: int) -> Floats:
        """Return losses by trial and part of the sweep of that ``number``; sweeps in a row go through all tasks."""
        kind, _, noise = family.partition("+")
        if kind.startswith("made:"):
            return made_up.sweep(kind.removeprefix("made:"), number, trials)
        tasks = _tasks(kind, self.lcbench)
        task = sorted(tasks)[number % len(tasks)]
        chance = np.random.default_rng([number, len(family)])
        drawn = tasks[task][chance.permutation(len(tasks[task]))[:trials]]
        if noise:
            ends = drawn.min(axis=1)
            drawn = drawn + float(noise) * (np.median(ends) - ends.min()) * chance.normal(size=drawn.shape)
        return drawn


@lru_cache(maxsize=16)
def _tasks(kind: str, lcbench: Path | None) -> Mapping[str, Floats]:
    if kind in LCBENCH:
        if lcbench is None:
            message = f"{kind}: its curves are not part of the project; name their file with --lcbench"
            raise FileNotFoundError(message)
        column, sign = LCBENCH[kind]
        return _table(lcbench, column, sign)
    if kind == "networks":
        return _table(TABLE, "loss", 1.0)
    with np.load(RECORDED, allow_pickle=False) as file:
        return {name: file[name].astype(float) for name in file.files if name.startswith(f"{kind}/")}


def _table(path: Path, column: str, sign: float) -> Mapping[str, Floats]:
    found = {}
    for task, configurations in read_curves(path, column).items():
        curves = [[sign * report.value for report in one.reports] for one in configurations.values()]
        longest = max(map(len, curves))
        padded = np.array([curve + [np.nan] * (longest - len(curve)) for curve in curves])
        padded[~np.isfinite(padded)] = np.nan
        at = np.ceil((np.arange(PARTS) + 1) * longest / PARTS - 1e-9).astype(int) - 1
        found[task] = np.where(np.isnan(padded), np.nanmax(padded), padded)[:, at]
    return found
