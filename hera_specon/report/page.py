"""The report: one HTML page with everything in it."""

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers.core.model import Direction
from controllers.core.objectives import missing_objectives, not_counted
from controllers.core.results import TrialResult, told_endings
from controllers.policies.promote import FIRST_RUNG
from controllers.tracking.access import shown
from hera_specon import formatting
from hera_specon.records.comparison import comparison_rows
from hera_specon.records.history import Move
from hera_specon.records.run_folder import PolicyRun, RunRecord, load_run
from hera_specon.report.best_so_far import best_chart
from hera_specon.report.curves import completion_chart, forecast_chart, learning_chart, share_chart
from hera_specon.report.early_order import early_order
from hera_specon.report.environment import environment, packed_plotly
from hera_specon.report.fronts import fronts_of
from hera_specon.report.gantt import gantt
from hera_specon.report.idle_nodes import idle_line, known_nodes
from hera_specon.report.models import importance_chart, importances, parallel_chart
from hera_specon.report.style import trial_colours
from hera_specon.risks import policies_in, risks, rungs

REPORT_FILE = "report.html"
LEADERS = 50
"""Trials that the table of the best models shows."""
MOST_COLUMNS = 12
"""Hyperparameters that it shows of each."""
TEMPLATE = "report.html.j2"
BODY = "body.html.j2"


def write_report(folder: Path, targets: Sequence[Path]) -> None:
    """Write the page about the run in ``folder`` to each of ``targets``, whole or not at all.

    Raises:
        controllers.core.errors.SpeconError: the folder cannot be read as a run.
    """
    write_page(load_run(folder), targets)


def write_page(record: RunRecord, targets: Sequence[Path]) -> None:
    """Write the page about ``record`` to each of ``targets``, whole or not at all."""
    text = page(record)
    for target in targets:
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def page(record: RunRecord) -> str:
    """Return the page about ``record`` as HTML that needs nothing from outside."""
    packed = base64.b64encode(packed_plotly()).decode()
    return environment().get_template(TEMPLATE).render(**parts(record), live=False, plotly=packed)


def live_body(record: RunRecord) -> str:
    """Return what the page about ``record`` shows, as HTML for a page that updates itself: without head and scripts."""
    return environment().get_template(BODY).render(**parts(record), live=True)


def parts(record: RunRecord) -> dict[str, Any]:
    """Return what the template shows of ``record``."""
    colours = trial_colours(trial for run in record.runs for trial in run.history.stretches)
    results = record.results()
    compared = comparison_rows(results)
    policies = policies_in(record.about.get("policies") or [run.policy for run in record.runs])
    end = max(run.history.end for run in record.runs)
    objective = str(record.about.get("objective") or "objective")
    maximise = record.about.get("direction") == Direction.MAXIMIZE.value
    direction = Direction.MAXIMIZE if maximise else Direction.MINIMIZE
    return {
        "name": record.about.get("name") or record.folder.name,
        "facts": facts(record.about),
        "unfinished": [run.policy for run in record.runs if run.result is None],
        "rows": compared,
        "missing": [line for result in results for line in missing_objectives(result).lines],
        "uncounted": [line for result in results for line in not_counted(result)],
        "risks": risks(policies),
        "endings": [line for result in results for line in told_endings(result)],
        "rungs": rungs(policies),
        "deadlines": any(result.deadlines.asked for result in results),
        "entries": trial_entries(record.runs),
        "gantt": gantt(record.runs),
        "idle": [(run.policy, line) for run in record.runs if (line := idle_line(run, known_nodes(record.about)))],
        "shares": [(run.policy, share_chart(run, colours, end)) for run in record.runs],
        "learning": learning_chart(record.runs, colours, objective),
        "best": best_chart(record.runs, direction, objective),
        "fronts": list(fronts_of(record.runs)),
        "leaders": [leaders_of(run.policy, sweep, ranked) for run, sweep, ranked in ranked_by_sweep(record.runs)],
        "early_orders": [order for run in record.runs if (order := early_order(run, direction))],
        "first_rung": FIRST_RUNG,
        "others": any(row.others for row in compared),
        "ended_early": [(run.policy, early) for run in record.runs if (early := ended_early(run))],
        "completion": completion_chart(results) if results else "",
        "foreseen": forecast_chart(record.runs, end),
        "held": [(run.policy, *counts) for run in record.runs if (counts := held_ranges(run))[1]],
    }


@dataclass(frozen=True, slots=True)
class Leaders:
    """The best of the ``of`` trials of a sweep under a policy, and what their hyperparameters had to do with it.

    ``names`` are those of the hyperparameters that its table shows; the charts are HTML.
    """

    policy: str
    sweep: str
    trials: tuple[TrialResult, ...]
    of: int
    names: tuple[str, ...]
    parallel: str
    importance: str


def leaders_of(policy: str, sweep: str, ranked: Sequence[TrialResult]) -> Leaders:
    """Return what to show of a sweep's ``ranked`` trials, the best first."""
    objective = ranked[0].objective or "objective"
    importance = importance_chart(importances(ranked))
    names = tuple(dict.fromkeys(name for trial in ranked for name in trial.params))[:MOST_COLUMNS]
    parallel = parallel_chart(ranked, objective)
    return Leaders(policy, sweep, tuple(ranked[:LEADERS]), len(ranked), names, parallel, importance)


def ranked_by_sweep(runs: Sequence[PolicyRun]) -> Iterator[tuple[PolicyRun, str, list[TrialResult]]]:
    """Yield the trials of each sweep under each policy that has finished, the best first."""
    for run in runs:
        for sweep, ranked in run.result.ranking().items() if run.result else ():
            yield run, sweep, ranked


def ended_early(run: PolicyRun) -> list[TrialResult]:
    """Return the trials that a policy ended before their training was through."""
    trials = run.result.trials if run.result else ()
    return sorted((trial for trial in trials if trial.stopped), key=lambda trial: formatting.natural(trial.id))


def held_ranges(run: PolicyRun) -> tuple[int, int]:
    """Return how many of the ranges that were told of trials held their ends, and how many were told."""
    ends = {trial.id: trial.completed_s for trial in run.result.trials} if run.result else {}
    told = [(ends[name], end) for forecast in run.forecasts for name, end in forecast.trials.items() if name in ends]
    return sum(end.holds(at) for at, end in told), len(told)


FACTS = {
    "file": "workflow",
    "started": "started",
    "nodes": "nodes",
    "cpus_per_node": "cores per node",
    "shares": "shares by",
    "objective": "objective",
    "direction": "direction",
    "further_objectives": "further objectives",
    "constraints": "constraints",
    "seed": "seed",
    "tracking_uri": "MLflow",
}


def facts(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what was run as pairs for the page's head, those that are known."""
    # The server of a run that has ended is gone.
    about = {**about, "tracking_uri": about.get("serve_mlflow") or about.get("tracking_uri")}
    known = [(title, about[name]) for name, title in FACTS.items() if about.get(name) not in (None, "")]
    told = [(title, ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)) for title, fact in known]
    # An older version kept the address of MLflow with the password in it.
    return [(title, shown(text)) for title, text in told]


@dataclass(frozen=True, slots=True)
class TrialUnder:
    """A trial under one policy; ``ratio`` is to its completion time under the first, None for the first."""

    policy: str
    result: TrialResult | None
    moves: tuple[Move, ...]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """A trial and how it went under each policy."""

    id: str
    params: str
    under: tuple[TrialUnder, ...]


def trial_entries(runs: Sequence[PolicyRun]) -> list[TrialEntry]:
    """Return every trial that any of the runs knows, in the order people count."""
    results_by_trial = [{t.id: t for t in run.result.trials} if run.result else {} for run in runs]
    ids = {trial for run in runs for trial in run.history.stretches}.union(*results_by_trial)
    entries = []
    for trial in sorted(ids, key=formatting.natural):
        results = [of_run.get(trial) for of_run in results_by_trial]
        first = results[0].completion_s if results[0] else None
        under = [
            TrialUnder(
                policy=run.policy,
                result=result,
                moves=tuple(move for move in run.history.moves if move.trial == trial),
                ratio=result.completion_s / first if run is not runs[0] and result and first else None,
            )
            for run, result in zip(runs, results, strict=True)
        ]
        params = next((formatting.params(result.params) for result in results if result and result.params), "")
        entries.append(TrialEntry(trial, params, tuple(under)))
    return entries
