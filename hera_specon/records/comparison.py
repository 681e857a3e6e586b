"""How the runs of one sweep compare, as rows for tables on screen and page. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from controllers.core.results import Comparison, RunResult, compare
from hera_specon.records.repeats import compare_repeats, groups, number_repeats

_LEAST_OF_OTHERS: Final = 0.05
"""Cores: less is told by no count exactly enough."""


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One policy's line; ``against`` is None for the baseline, ``faster`` and ``slower`` count trials.

    ``idle`` tells that the policy did nothing that the baseline did not: every trial began on the same node, and none
    was moved, resized, suspended or stopped. What differs then is noise. ``significant`` tells that the policy ran
    several times, and chance alone is unlikely to have made its makespans so different.
    """

    result: RunResult
    against: Comparison | None
    faster: int
    slower: int
    idle: bool = False
    significant: bool = False

    @property
    def moves(self) -> int:
        """Moves of all trials."""
        return sum(trial.moves for trial in self.result.trials)

    @property
    def resizes(self) -> int:
        """Resizes of all trials."""
        return sum(trial.resizes for trial in self.result.trials)

    @property
    def scales(self) -> int:
        """How often trials went on with another number of workers."""
        return sum(trial.scales for trial in self.result.trials)

    @property
    def suspensions(self) -> int:
        """Suspensions of all trials."""
        return sum(trial.suspensions for trial in self.result.trials)

    @property
    def ended_early(self) -> int:
        """Trials that the policy ended before their training was through."""
        return sum(bool(trial.stopped) for trial in self.result.trials)

    @property
    def cores_delivered(self) -> float | None:
        """Cores that the trials had on average while the sweep lasted; None where not every trial's CPU was counted."""
        seconds = [trial.cpu_seconds for trial in self.result.trials if trial.cpu_seconds is not None]
        whole = len(seconds) == len(self.result.trials) and self.result.makespan_s > 0
        return sum(seconds) / self.result.makespan_s if whole else None

    @property
    def others(self) -> float:
        """Cores that others had of its nodes on average; 0 where that is too little to matter, or not known."""
        cores = self.result.cores_of_others or 0.0
        return cores if cores >= _LEAST_OF_OTHERS else 0.0

    @property
    def failed(self) -> int:
        """Trials that did not succeed; their times say little."""
        return sum(not trial.succeeded for trial in self.result.trials)


def labels(names: Sequence[str], specs: Sequence[str]) -> list[str]:
    """Return what to call each run: its policy's name, or its whole spec where names are not enough.

    Where that comes again, the run is a repeat, and gets a number.
    """
    given = specs[: len(names)]
    enough = len(given) < len(names) or len(set(given)) <= len(set(names))
    return number_repeats(names if enough else given)


def label_results(results: Sequence[RunResult], specs: Sequence[str]) -> list[RunResult]:
    """Return ``results`` under policies that can be told apart; ``specs`` are as they were asked for."""
    names = labels([result.policy for result in results], specs)
    return [replace(result, policy=name) for result, name in zip(results, names, strict=True)]


def comparison_rows(results: Sequence[RunResult]) -> list[ComparisonRow]:
    """Return a row per result, each set beside the first policy: a repeat beside the repeat of the same number.

    Raises:
        ComparisonError: the runs do not have the same trials.
    """
    by_policy = groups(results)
    baselines = next(iter(by_policy.values()), [])
    differs = {row.policy: bool(row.makespan and row.makespan.significant) for row in compare_repeats(results, idle)}
    rows: dict[str, ComparisonRow] = {}
    for policy, runs in by_policy.items():
        for number, run in enumerate(runs):
            if runs is baselines:
                rows[run.policy] = ComparisonRow(run, None, 0, 0)
                continue
            baseline = baselines[min(number, len(baselines) - 1)]
            before, after = completions(baseline), completions(run)
            rows[run.policy] = ComparisonRow(
                run,
                compare(baseline, run),
                faster=sum(after[trial] < before[trial] for trial in before),
                slower=sum(after[trial] > before[trial] for trial in before),
                idle=idle(baseline, run),
                significant=differs.get(policy, False),
            )
    return [rows[result.policy] for result in results]


def idle(baseline: RunResult, other: RunResult) -> bool:
    """Return whether ``other`` did nothing that ``baseline`` did not."""
    begun = {trial.id: trial.first_node for trial in baseline.trials}
    return not any(
        trial.moves
        or trial.resizes
        or trial.scales
        or trial.suspensions
        or trial.stopped
        or trial.first_node != begun[trial.id]
        for trial in other.trials
    )


def completions(result: RunResult) -> Mapping[str, float]:
    """Return each trial's completion time in seconds."""
    return {trial.id: trial.completion_s for trial in result.trials}


def to_json(results: Sequence[RunResult]) -> dict[str, Any]:
    """Return what ``specon run --json`` writes: every run, and each later one beside the first."""
    return {
        "runs": [result.to_dict() for result in results],
        "repeats": [
            {
                "baseline": results[0].policy,
                "policy": row.policy,
                "runs": len(row.runs),
                "idle": row.idle,
                "makespan": row.makespan and asdict(row.makespan),
                "mean_completion": row.mean_completion and asdict(row.mean_completion),
            }
            for row in compare_repeats(results, idle)[1:]
        ],
        "comparisons": [
            {"baseline": results[0].policy, "policy": row.result.policy, **asdict(row.against)}
            for row in comparison_rows(results)
            if row.against
        ],
    }
