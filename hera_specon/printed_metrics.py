"""Metrics of a sweep that its program prints: what ``metrics=`` says."""

from collections.abc import Sequence
from dataclasses import dataclass

from hera_specon.errors import SweepError
from hera_specon.hera_internals import ARGO_METRICS, ArgoMetric
from hera_specon.settings import Objective, Workers, why_no_metric
from mlflow_hooks.printed.form import NOT_THEIRS, PrintedForm, why_no_form


@dataclass(frozen=True, slots=True)
class PrintedMetrics:
    """How metrics stand in what a program prints, and the image of the reader where the program's own has no Python."""

    form: PrintedForm
    reader: str | None = None


MetricsChoice = PrintedMetrics | ArgoMetric | Sequence[PrintedMetrics | ArgoMetric]
"""Metrics that the program prints, beside those that Argo tells Prometheus of the trials' steps."""


def printed(*patterns: str, reader: str | None = None) -> PrintedMetrics:
    r"""Read metrics from what the program prints, on either stream, in whatever language it is written.

    ``printed(r"epoch (?P<step>\d+): val_loss=(?P<val_loss>\S+)")`` reads ``val_loss`` at the step that the line tells.

    Args:
        patterns: Regular expressions with named groups, each for a part of a line: a group holds the metric of its
            name, and one named ``step`` or ``epoch`` the step. A pattern with a step alone tells it for the lines that
            follow. Without any step, the values of a metric are numbered from 0. The syntax is RE2's, which is Python's
            without look-around and back-references: no line can make it slow. Colours are taken out of a line first.
            Without patterns, metrics are read by their names: ``loss: 0.31``, ``epoch 3 loss 0.31``, rows of tables.
        reader: Image that a pod takes the reader from, for a program whose own image has no Python: any that has Python
            and ``hera-specon-hooks[printed]``, such as the trainer's. By default the program's own has them.
    """
    return PrintedMetrics(PrintedForm(patterns=patterns), reader)


def printed_json(*names: str, step: str | None = None, reader: str | None = None) -> PrintedMetrics:
    """Read metrics from JSON objects that the program prints, one on a line, whatever stands before and after each.

    ``printed_json("val_loss", "eval.accuracy", step="epoch")`` reads ``{"epoch": 3, "val_loss": 0.31, ...}``.

    Args:
        names: Keys that hold metrics; with a dot also a key of an object within.
        step: The key that holds the step, a whole number. Without, the values of a metric are numbered from 0.
        reader: As with ``printed``.

    Raises:
        SweepError: No name is given.
    """
    if not names:
        problem = 'printed_json() needs the keys that hold metrics, as in printed_json("val_loss", step="epoch")'
        raise SweepError(problem)
    return PrintedMetrics(PrintedForm(keys=names, step=step), reader)


def check_printed(given: object, objective: Objective, workers: Workers) -> PrintedMetrics | None:
    """Return what ``metrics=`` says of printed ones, None where nothing.

    Hera gives the templates of trials what else stands there: metrics that Argo tells Prometheus.

    Raises:
        SweepError: It is nothing of the kind, MLflow would refuse a name, it never holds the objective, or the trials
            have several workers.
    """
    several = given if isinstance(given, list | tuple) else () if given is None else (given,)
    if wrong := [one for one in several if not isinstance(one, (PrintedMetrics, *ARGO_METRICS))]:
        problem = f"metrics= is printed(...), printed_json(...) or metrics of Argo's, not {wrong[0]!r}"
        raise SweepError(problem)
    ours = [one for one in several if isinstance(one, PrintedMetrics)]
    if len(ours) > 1:
        problem = "metrics= has several printed(...): give one all the patterns"
        raise SweepError(problem)
    return _checked(ours[0], objective, workers) if ours else None


def _checked(given: PrintedMetrics, objective: Objective, workers: Workers) -> PrintedMetrics:
    if workers.most > 1:
        problem = "metrics= reads what one process prints: a trial of several workers logs its metrics by the hooks"
        raise SweepError(problem)
    image: object = given.reader
    if image is not None and not (isinstance(image, str) and image.strip()):
        problem = f"metrics=: reader= is the name of an image, not {image!r}"
        raise SweepError(problem)
    why_not = why_no_form(given.form, objective.metric)
    for name in () if why_not else given.form.names:
        reserved = f"a metric {name!r} is ours to log" if name.startswith(NOT_THEIRS) else None
        why_not = why_not or why_no_metric(name) or reserved
    if why_not:
        problem = f"metrics=: {why_not}"
        raise SweepError(problem)
    return given
