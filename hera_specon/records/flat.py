"""Trials as rows with one value in each column: for CSV files and data frames. Pure."""

from collections.abc import Sequence
from dataclasses import asdict

from controllers.core.results import RunResult, TrialResult

METRIC = "metric."
"""What the columns of metrics begin with that count beside the objective."""
_OF_SEVERAL = frozenset({"further_objectives", "constraints"})
PARAMETER = "parameter."
"""What the columns of hyperparameters begin with, as in workload files."""


def flat_rows(results: Sequence[RunResult]) -> list[dict[str, object]]:
    """Return a row for each trial under each policy: who it is, its hyperparameters, and how it went."""
    return [_row(result.policy, trial) for result in results for trial in result.trials]


def _row(policy: str, trial: TrialResult) -> dict[str, object]:
    left_out = {"id", "params", "first_nodes", "values", "unlogged"} | (set() if trial.aims else _OF_SEVERAL)
    left_out |= set() if trial.remark else {"remark"}
    told = {name: value for name, value in asdict(trial).items() if name not in left_out}
    return {
        "policy": policy,
        "trial": trial.id,
        **{f"{PARAMETER}{name}": value for name, value in trial.params.items()},
        **{f"{METRIC}{name}": value for name, value in trial.values.items()},
        **told,
        "completion_s": trial.completion_s,
    }
