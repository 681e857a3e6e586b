"""Makes the weights of a promised risk (``promote:finish=best``), and judges what it promises.

    python -m benchmarks.train_promote record
    python -m benchmarks.train_promote train [--lcbench FILE] [--sweeps 24] [--ship]
    python -m benchmarks.train_promote judge [--sweeps 120] [--trials 100] [--slots 4] [--json FILE]
    python -m benchmarks.train_promote rules [--sweeps 120] [--trials 100] [--slots 4] [--risks 0.8 3.0] [--json FILE]

``record`` trains the tasks that are kept for judging, on one core (a quarter of an hour). ``train`` simulates sweeps of
all training families under a first guess, fits the model to what its decisions saw, does both once more under that
model, and with ``--ship`` writes the weights into the package (about half an hour on two cores). ``judge`` runs sweeps
of the families that no training has seen, under the shipped weights, and prints what the promises came to. ``rules``
runs the same under fixed rules, and prints how long each takes at the ``--risks`` (in percent, those of the promises),
between its settings.
"""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.train_promote.families import RECORDED, Families
from benchmarks.train_promote.fitting import fit
from benchmarks.train_promote.fixed_rules import RULES, makespan_at
from benchmarks.train_promote.recorded import KINDS, tasks
from benchmarks.train_promote.running import Judgement, by_fixed_rules, judged, seen_in
from controllers.lab.worker_pool import worker_pool
from controllers.policies.promote.features import NAMES, Floats
from controllers.policies.promote.odds import SHIPPED, OddsModel, write
from hera_specon.cli.output import progress_bar

if TYPE_CHECKING:
    from benchmarks.train_promote.sweeps import Seen

PROMISES: Final = (0.02, 0.05, 0.1, 0.2)
_CONSOLE: Final = Console(width=160)


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "train", "judge", "rules"))
    parser.add_argument("--lcbench", type=Path, help="table of LCBench's curves; without it, its families are left out")
    parser.add_argument("--sweeps", type=int, help="of each family (default: 24 to train by, 120 to judge by)")
    parser.add_argument("--trials", type=int, default=100, help="of each sweep that is judged")
    parser.add_argument("--slots", type=int, default=4, help="trials that run at a time in those")
    parser.add_argument("--ship", action="store_true", help="write the weights into the package")
    parser.add_argument("--risks", type=float, nargs="*", default=(), help="in percent, to compare fixed rules at")
    parser.add_argument("--json", type=Path, help="where to write what was judged")
    given = parser.parse_args()
    if given.what == "record":
        _record()
    elif given.what == "train":
        _train(Families(given.lcbench), given.sweeps or 24, ship=given.ship)
    elif given.what == "rules":
        _rules(given)
    else:
        _judge(given.sweeps or 120, given.trials, given.slots, given.json)


def _record() -> None:
    """Train what is judged by, and keep the losses to four digits."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for kind, one in tasks():
        torch.manual_seed(0)
        found[f"{kind}/{one}"] = np.array([[float(f"{loss:.4g}") for loss in row] for row in KINDS[kind](one)], "f4")
        _CONSOLE.print(f"{kind}/{one}: {np.median(found[f'{kind}/{one}'].min(axis=1)):.4g}")
    np.savez_compressed(RECORDED, **found)


def first_guess() -> OddsModel:
    """Return the model of the first round: good trials are likely to be the best."""
    weights = np.zeros(2 * len(NAMES))
    weights[NAMES.index("need")], weights[NAMES.index("rank")] = -1.0, -4.0
    return OddsModel(weights, -1.0)


def _train(families: Families, sweeps: int, *, ship: bool) -> None:
    names, model = families.named("training"), first_guess()
    seen: dict[str, list[Sequence[Seen]]] = {name: [] for name in names}
    for turn in range(2):
        wanted = [(name, turn * sweeps + number) for name in names for number in range(sweeps)]
        see = partial(seen_in, families, model)
        with (
            worker_pool() as pool,
            progress_bar(_CONSOLE, "simulating", f"sweeps of round {turn + 1}", len(wanted)) as advance,
        ):
            for (name, _), found in zip(wanted, pool.map(see, wanted, chunksize=4), strict=True):
                seen[name].append(found)
                advance(1)
        model = fit(seen)
    if ship:
        write(SHIPPED, model, {"families": " ".join(names), "sweeps": str(2 * sweeps)})
        _CONSOLE.print(f"wrote {SHIPPED}")


def _judge(sweeps: int, trials: int, slots: int, kept: Path | None) -> None:
    names = Families().named("judging")
    wanted = [(name, number) for name in names for number in range(sweeps)]
    with worker_pool() as pool, progress_bar(_CONSOLE, "judging", "sweeps", len(wanted)) as advance:
        found: dict[str, list[Judgement]] = {name: [] for name in names}
        judge = partial(judged, trials, slots, PROMISES)
        for (name, _), one in zip(wanted, pool.map(judge, wanted, chunksize=4), strict=True):
            found[name].append(one)
            advance(1)
    _CONSOLE.print(_table(found, f"{trials} trials, {slots} at a time, {sweeps} sweeps of each family"))
    if kept is not None:
        kept.write_text(json.dumps({name: [vars(one) for one in of] for name, of in found.items()}), "utf-8")


def _rules(given: argparse.Namespace) -> None:
    """Print what fixed rules come to on the same sweeps."""
    names, sweeps = Families().named("judging"), given.sweeps or 120
    wanted = [(name, number) for name in names for number in range(sweeps)]
    with worker_pool() as pool, progress_bar(_CONSOLE, "judging", "sweeps", len(wanted)) as advance:
        found = []
        for one in pool.map(partial(by_fixed_rules, given.trials, given.slots), wanted, chunksize=4):
            found.append(one)
            advance(1)
    by_family = 100 * np.array(found).reshape(len(names), sweeps, len(RULES), 3).mean(axis=1)
    title = f"{given.trials} trials, {given.slots} at a time"
    table = Table("rule", "setting", "makespan, %", "risk, %", "risk beyond noise, %", title=title)
    for rule, row in zip(RULES, by_family.mean(axis=0), strict=True):
        table.add_row(rule.line, rule.setting, *(f"{number:.1f}" for number in row))
    _CONSOLE.print(table)
    if given.risks:
        _CONSOLE.print(_at_risks(by_family.mean(axis=0), given.risks))
    if given.json is not None:
        rows = zip(RULES, by_family.transpose(1, 0, 2).tolist(), strict=True)
        kept = {f"{rule.line}, {rule.setting}": dict(zip(names, row, strict=True)) for rule, row in rows}
        given.json.write_text(json.dumps(kept), "utf-8")


def _at_risks(means: Floats, risks: Sequence[float]) -> Table:
    """Return how long each rule takes at each risk beyond the noise, between its settings."""
    table = Table("rule", *(f"at a risk of {risk:g} %" for risk in risks), title="makespan, %")
    lines: dict[str, list[tuple[float, float]]] = {}
    for rule, (makespan, _, beyond) in zip(RULES, means.tolist(), strict=True):
        lines.setdefault(rule.line, []).append((makespan, beyond))
    for line, points in lines.items():
        found = (makespan_at(risk, points) for risk in risks)
        table.add_row(line, *("" if one is None else f"{one:.1f}" for one in found))
    return table


def _table(found: dict[str, list[Judgement]], title: str) -> Table:
    """Return makespan, risk, and risk beyond noise, by family and promise; families count alike in the last row."""
    table = Table("family", "noise, %", *(f"promise {promise:.0%}" for promise in PROMISES), title=title)
    rows = {name: np.array([one.numbers() for one in of]).mean(axis=0) for name, of in found.items()}
    noises = {name: float(np.median([one.noise for one in of])) for name, of in found.items()}
    for name, row in {**rows, "mean": np.mean([*rows.values()], axis=0)}.items():
        cells = (f"{100 * m:.1f} / {100 * risk:.1f} / {100 * beyond:.1f}" for m, risk, beyond in row.reshape(-1, 3))
        table.add_row(name, f"{noises[name]:.1f}" if name in noises else "", *cells)
    return table


if __name__ == "__main__":
    main()
