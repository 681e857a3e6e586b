"""What the MLflow runs of trials and sweeps should show of their cost by now. This module imports no MLflow."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from controllers.core.bill import Bill
from controllers.core.model import TrialId
from mlflow_hooks import contract

_NEWS: Final = 0.02
"""Part by which a cost has to grow until it is written again: it grows all the time."""


class CostBoard:
    """Keeps the cost of trials and sweeps on their runs, where prices are known.

    Args:
        bill: tells what the sweep has cost so far.
        trials: tells the MLflow run of each trial that has one.
        sweeps: tells that of each sweep, by the sweep's id.
        over: tells whether nothing will cost anything any more: then the very last amounts are written.
    """

    def __init__(
        self,
        bill: Callable[[], Bill],
        trials: Callable[[], Mapping[TrialId, str]],
        sweeps: Callable[[], Mapping[str, str]],
        over: Callable[[], bool],
    ) -> None:
        self._bill = bill
        self._trials = trials
        self._sweeps = sweeps
        self._over = over
        self._offered: dict[str, float] = {}
        self._written: dict[str, float] = {}

    def due(self, *, also_minor: bool) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each trial or sweep that has become dearer; all of these can wait."""
        bill = self._bill()
        if not also_minor or not bill.known:
            return
        trials, sweeps = self._trials(), self._sweeps()
        costs = [(name, sweeps.get(name), cost) for name, cost in sweep_costs(bill).items()]
        costs += [(name, trials.get(name), cost) for name, cost in bill.trials.items()]
        news = 0.0 if self._over() else _NEWS
        for name, run_id, cost in costs:
            if run_id is not None and cost > self._written.get(name, 0.0) * (1 + news):
                self._offered[name] = cost
                yield name, run_id, {contract.TAG_COST: f"{cost:.4g}"}

    def wrote(self, name: str, news: Mapping[str, str]) -> None:
        """Note that a run shows what was yielded of it."""
        del news
        self._written[name] = self._offered[name]

    def writes(self, name: str, news: Mapping[str, str]) -> None:
        """Note that it is not known what a run shows."""
        del news
        self._written.pop(name, None)


def sweep_costs(bill: Bill) -> dict[str, float]:
    """Return what each sweep has cost, by its id: its trials, and its part of what stood idle beside them."""
    costs: dict[str, float] = {}
    for trial, cost in bill.trials.items():
        sweep = trial.rpartition(".")[0]
        costs[sweep] = costs.get(sweep, 0.0) + cost
    held = sum(costs.values())
    return {sweep: cost * (1 + bill.idle / held) if held else cost for sweep, cost in costs.items()}
