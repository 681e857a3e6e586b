"""Tables of the Pareto fronts at the end of a run, drawn with rich."""

from collections.abc import Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from controllers.core.results import RunResult
from hera_specon import formatting


def front_tables(result: RunResult, most: int) -> Iterator[Table]:
    """Yield for each sweep of several objectives its front, at most ``most`` trials of it."""
    fronts = result.fronts()
    for sweep, front in fronts.items():
        of_sweep = f" of {formatting.printable(sweep)}" if len(fronts) > 1 else ""
        table = Table(title=f"The Pareto front{of_sweep}: {len(front)} trials", box=box.SIMPLE_HEAD)
        table.title_justify = "left"
        table.add_column("trial")
        metrics = front[0].aims.metrics if front else ()
        for metric in [front[0].objective, *metrics] if front else ():
            table.add_column(Text(formatting.printable(metric)), justify="right")
        table.add_column("hyperparameters", overflow="fold")
        for trial in front[:most]:
            values = [trial.final_metric, *(trial.values.get(metric) for metric in metrics)]
            early = " (ended early)" if trial.stopped else ""
            cells = [trial.id + early, *map(formatting.figure, values), formatting.params(trial.params)]
            table.add_row(*(Text(formatting.printable(cell)) for cell in cells))
        if len(front) > most:
            table.caption = f"and {len(front) - most} more; the report has all of them"
        yield table
