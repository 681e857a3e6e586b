"""The tables of docs/experiments/payoff.md and in-figures.md, each below its line ``<!-- table: NAME -->``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.experiments.markdown import percent, table, with_tables
from benchmarks.payoff.figures import summaries
from benchmarks.payoff.plan import PLANS, Plan
from benchmarks.payoff.records import DISTURBED_CORES, Run
from controllers.lab.simulation.evaluation import MeanOverSeeds, PolicySummary, RunFigures
from controllers.policies.registry import parse_policy

_ROOT: Final = Path(__file__).parents[2]
_PAGES: Final = _ROOT / "docs" / "experiments"
PAGES: Final = (_PAGES / "in-figures.md", _PAGES / "payoff.md")
_COLUMNS: Final = (
    "policy", "seeds", "makespan", "change", "at equal speed", "x bound", "mean completion", "change",
    "at equal speed", "x bound", "faster", "worst loser", "moves", "resizes", "CPU s of trials", "cores used",
    "cores lost", "probe",
)  # fmt: skip
_IN_FIGURES: Final = (
    "sweep", "policy", "makespan", "change", "at equal speed", "x bound", "mean completion", "change", "at equal speed",
    "worst loser",
)  # fmt: skip
_PLACES: Final = {"local": "this machine", "cluster": "test cluster"}


def write_pages(runs: Sequence[Run]) -> None:
    """Write the tables of the sweeps that were run again; the others stay."""
    made = tables(runs)
    for page in PAGES:
        page.write_text(with_tables(page.read_text("utf-8"), made), "utf-8")


def tables(runs: Sequence[Run]) -> dict[str, str]:
    """Return every table by the name in its mark; one without runs is empty."""
    made = {f"{plan.world} {sweep}": sweep_table(plan, sweep, runs) for plan in PLANS for sweep in plan.sweeps}
    made |= {f"payoff {world}": _overview(world, runs) for world in _PLACES}
    return {name.replace(" ", "-"): text for name, text in made.items()}


def sweep_table(plan: Plan, sweep: str, runs: Sequence[Run]) -> str:
    """Return a row for each policy of one sweep, with means over its seeds."""
    rows = [_row(one) for one in summaries(plan, sweep, runs)]
    return table(_COLUMNS, rows) if rows else ""


def disturbed(runs: Sequence[Run]) -> list[str]:
    """Return a line for each run that others disturbed and that no other run replaces."""
    return [
        f"{run.task.sweep}, seed {run.task.seed}, {run.task.policy}: {run.delivered.lost:.2f} cores lost to others "
        f"(more than {DISTURBED_CORES:g})"
        for run in runs
        if run.disturbed
    ]


def _overview(world: str, runs: Sequence[Run]) -> str:
    """Return the rows of in-figures.md: of the sweeps whose trials have one worker each, run over several seeds."""
    rows = []
    for plan in (plan for plan in PLANS if plan.world == world and plan.workers == 1):
        for one in (one for sweep in plan.sweeps for one in summaries(plan, sweep, runs)):
            loser = "" if one.baseline else f"{_most(one, lambda run: run.worst_loser):.2f}"
            rows.append([f"{one.experiment}, {_PLACES[world]}", _name(one), *_times(one)[:-1], loser])
    return table(_IN_FIGURES, rows) if rows else ""


def _row(one: PolicySummary) -> list[str]:
    against = not one.baseline
    return [
        _name(one),
        str(one.seeds),
        *_times(one),
        percent(one.over_seeds(lambda run: run.faster_share), signed=False) if against else "",
        f"{_most(one, lambda run: run.worst_loser):.2f}" if against else "",
        _plain(one, lambda run: run.moves),
        _plain(one, lambda run: run.resizes),
        _plain(one, lambda run: run.measures["cpu_s"]),
        _plain(one, lambda run: run.measures["delivered"], 2),
        _plain(one, lambda run: run.measures["lost"], 2),
        f"{_plain(one, lambda run: run.measures['probe_ms'], 1)} ms",
    ]


def _name(one: PolicySummary) -> str:
    """Return the policy's name; its parameters are in the plan."""
    return f"`{parse_policy(one.policy).name}`"


def _times(one: PolicySummary) -> list[str]:
    """Return makespan and mean completion time, each with its changes and as a multiple of its bound."""
    kinds: tuple[tuple[Callable[[RunFigures], float | None], ...], ...] = (
        (
            lambda run: run.makespan_s,
            lambda run: run.makespan_change,
            lambda run: run.measures["makespan_at_equal_speed"],
            lambda run: run.bound_ratio,
        ),
        (
            lambda run: run.mean_completion_s,
            lambda run: run.mean_change,
            lambda run: run.measures["mean_at_equal_speed"],
            lambda run: run.mean_bound_ratio,
        ),
    )
    cells = []
    for seconds, change, at_equal_speed, ratio in kinds:
        changes = [None if one.baseline else one.over_seeds(figure) for figure in (change, at_equal_speed)]
        cells += [_ranged(one.over_seeds(seconds), " s", 0), *map(percent, changes)]
        cells += [_ranged(one.over_seeds(ratio), "", 2)]
    return cells


def _ranged(found: MeanOverSeeds | None, unit: str, places: int) -> str:
    if found is None:
        return ""
    reach = "" if found.half_width is None else f" ±{found.half_width:.{places}f}"
    return f"{found.mean:.{places}f}{reach}{unit}"


def _plain(one: PolicySummary, figure: Callable[[RunFigures], float | None], places: int = 0) -> str:
    found = one.over_seeds(figure)
    return "" if found is None else f"{found.mean:.{places}f}"


def _most(one: PolicySummary, figure: Callable[[RunFigures], float]) -> float:
    return max(map(figure, one.runs))
