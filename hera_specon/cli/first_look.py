"""One trial before a sweep whose objective nobody has named: it shows which metrics there are to choose from."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from controllers.core.errors import SweepInterrupted
from hera_specon.cli.backend import Backend
from hera_specon.cli.group import BadInput
from hera_specon.cli.one_line import OneLine, built
from hera_specon.cli.output import say
from hera_specon.display.screens import PlainScreen
from hera_specon.settings import Objective, maximize, minimize
from mlflow_hooks.bounds import MOST_OF_JOURNAL, MOST_OF_LOG
from mlflow_hooks.foreign_files import both_ends, lines_beyond
from mlflow_hooks.journal import POINTS
from mlflow_hooks.points import Point
from mlflow_hooks.printed.lines import lines_of
from mlflow_hooks.printed.named import kept_name, printed_metrics

if TYPE_CHECKING:
    from controllers.local_run.run import LocalRun

_FOLDER: Final = "first-look"
_TRACKING: Final = "MLFLOW_TRACKING_URI"
_NOBODYS: Final = "specon.first_look"
"""An objective that no script logs or prints: its values would count as logged."""
_NOT_THEIRS: Final = ("specon.", "system/")
_LESS: Final = re.compile(
    r"loss|err(or)?|r?mse|mae|mape|nll|perplexity|ppl|wer|cer|fid|deviance|logloss|divergence", re.IGNORECASE
)
_MORE: Final = re.compile(
    r"acc(uracy)?|f1|auc|auroc|precision|recall|score|bleu|rouge|reward|return|r2|m?ap|m?iou|dice|psnr|ssim|top\d",
    re.IGNORECASE,
)
_HELD_OUT: Final = re.compile(r"val(id(ation)?)?|dev|test|eval", re.IGNORECASE)
_PARTS: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
_MOST_SHOWN: Final = 12
_LAST_LINES: Final = 12


def look_first(backend: Backend, asked: OneLine, state_dir: Path, inherit: tuple[str, ...]) -> NoReturn:
    """Run one trial of a sweep that has no objective yet, and say what that could be.

    Args:
        backend: what runs the trial.
        asked: the sweep.
        state_dir: folder for the trial; nothing of it stays.
        inherit: as in ``LocalSettings``.

    Raises:
        BadInput: always, with the metrics to choose from, or with what the trial failed by.
    """
    from controllers.driving.stop_signals import STILL_ENDING, heard_while  # noqa: PLC0415
    from controllers.local_run.order import LocalSettings  # noqa: PLC0415 - `specon --help` must not wait for MLflow

    folder = state_dir / _FOLDER
    sweep = replace(asked.sweep, search="random", trials=1, objective=minimize(_NOBODYS))
    say(
        "Neither --minimize nor --maximize: one trial runs first, to see which metrics there are. Ctrl-C ends it as "
        "soon as it has told of some.",
        err=True,
    )
    settings = LocalSettings(nodes=1, seed=sweep.seed, state_dir=folder, inherit=inherit, trains_anyway=True)
    done: LocalRun | None = None
    try:
        with _own_mlflow(), suppress(SweepInterrupted):
            workflow, screen = built(backend, sweep), PlainScreen(lambda _: None)
            policies = [backend.parse_policy("default")]
            run_it = partial(backend.run_locally, workflow, asked.file, policies, settings, screen)
            done = heard_while(run_it, lambda: say(STILL_ENDING, err=True))
        raise BadInput(_describe(asked, done, metrics_in(folder), _read_output(folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_mlflow() -> Iterator[None]:
    """Keep the trial out of an MLflow of the user's."""
    given = os.environ.pop(_TRACKING, None)
    try:
        yield
    finally:
        if given is not None:
            os.environ[_TRACKING] = given


@dataclass(frozen=True, slots=True)
class FoundMetric:
    """A metric, its last value, and the objectives that it may be, the likelier first."""

    name: str
    last: float

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """``minimize`` of what sounds like a loss, ``maximize`` of what sounds like a score, else both."""
        less, more = (_sounds(kind, self.name) for kind in (_LESS, _MORE))
        if less == more:
            return minimize(self.name), maximize(self.name)
        return (minimize(self.name) if less else maximize(self.name),)

    @property
    def rank(self) -> tuple[bool, bool, str]:
        """Sorts what is likelier an objective before the rest: known words first, of held-out data first."""
        return len(self.objectives) > 1, not _sounds(_HELD_OUT, self.name), self.name


def metrics_in(folder: Path) -> list[FoundMetric]:
    """Return the metrics that trials under ``folder`` logged; where they logged none, those that they printed."""
    from controllers.tracking.values import newest_in_database  # noqa: PLC0415 - MLflow's import takes seconds

    logged = dict(_read_journals(folder)) | newest_in_database(folder / "mlflow" / "mlflow.db")
    metrics = {name: value for name, value in logged.items() if not name.startswith(_NOT_THEIRS)}
    if not metrics:
        metrics = {kept_name(name): value for name, value in printed_metrics(*_read_output(folder))}
    return sorted((FoundMetric(*item) for item in metrics.items()), key=lambda metric: metric.rank)


def _read_journals(folder: Path) -> Iterator[tuple[str, float]]:
    for path in sorted(folder.glob(f"runs/*/*/state/*/{POINTS}")):
        points = map(Point.decode, lines_beyond(path, 0, MOST_OF_JOURNAL))
        yield from ((point.key, point.value) for point in points if point is not None)


def _read_output(folder: Path) -> list[str]:
    """Return the lines that trials under ``folder`` printed."""
    logs = sorted(folder.glob("runs/*/*/logs/*.log"))
    return [line for log in logs for line in lines_of(both_ends(log, MOST_OF_LOG))]


def _describe(asked: OneLine, done: "LocalRun | None", metrics: list[FoundMetric], printed: list[str]) -> str:
    """Return what the first trial says of the objective."""
    failed = done is not None and not all(trial.succeeded for result in done.results for trial in result.trials)
    if failed:
        last = [line for line in printed if line.strip()][-_LAST_LINES:]
        return "\n".join(["The first trial failed, so the sweep was not started. It printed last:", *_indent(last)])
    if not metrics:
        return (
            "The first trial told of no metric, so there is nothing to go by. Print one, as in `loss: 0.31`, or log it "
            "with MLflow or with the hooks (docs/how-to/instrument-a-training-script.md)."
        )
    choices = [(asked.command(objective), metric) for metric in metrics for objective in metric.objectives]
    wide = max(len(line) for line, _ in choices[:_MOST_SHOWN])
    lines = [f"{line:<{wide}}   # {metric.name} was {metric.last:g} in the end" for line, metric in choices]
    more = [f"... and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
    return "\n".join(
        [
            "What is the objective? The first trial told of these metrics. Choose a line (that trial trains again):",
            *_indent([*lines[:_MOST_SHOWN], *more]),
        ]
    )


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _sounds(kind: "re.Pattern[str]", name: str) -> bool:
    return any(kind.fullmatch(part) for part in _PARTS.split(name))
