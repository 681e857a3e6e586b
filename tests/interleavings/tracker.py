"""An MLflow server in memory, and a client of it that pauses before and after each call."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

from mlflow.entities import Metric, Run, RunData, RunInfo, RunTag
from mlflow.exceptions import MlflowException

from mlflow_hooks import contract
from tests.controllers.worlds.argo.objects import BEGAN
from tests.interleavings.checks import Checks
from tests.interleavings.perils import Perils

POLICY: Final = "specon.policy"
"""The tag by which a sweep's parent run is known."""
_EXPERIMENT: Final = "Default"
_CLAUSE: Final = re.compile(r"tags\.`([^`]+)` (=|!=|LIKE) '([^']*)'")
_STATUS: Final = re.compile(r"attributes\.status = '(\w+)'")
_BEGAN: Final = re.compile(r"attributes\.start_time > (-?\d+)")
_IDS: Final = re.compile(r"attributes\.run_id IN \(([^)]*)\)")


@dataclass
class TrackedRun:
    """A run: the points of each metric as (value, step, Unix milliseconds), and its artifacts' text by path.

    ``began`` is in Unix milliseconds, too.
    """

    id: str
    experiment: str
    began: int
    status: str = "RUNNING"
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, list[tuple[float, int, int]]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def log(self, name: str, value: float, step: int, at_s: float) -> None:
        """Take a point of a metric, logged ``at_s`` seconds after the run of the test began."""
        self.metrics.setdefault(name, []).append((value, step, int((BEGAN + at_s) * 1000)))

    def history(self, name: str) -> list[Metric]:
        """Return the points of a metric."""
        return [Metric(name, value, at, step) for value, step, at in self.metrics.get(name, ())]

    def shown(self) -> Run:
        """Return it as MLflow's client does."""
        newest = [self.history(name)[-1] for name in self.metrics]
        tags = [RunTag(name, value) for name, value in self.tags.items()]
        place = f"mlflow-artifacts:/{self.experiment}/{self.id}/artifacts"
        info = RunInfo(self.id, self.experiment, "test", self.status, self.began, None, "active", place)
        return Run(info, RunData(newest, [], tags))


class Page(list[Run]):
    """The only page of an answer."""

    token: str | None = None


class Experiments(list[SimpleNamespace]):
    """The only page of all experiments."""

    token: str | None = None


class Tracker:
    """The server. What is in it outlives every controller.

    Args:
        now: gives the seconds since the run of the test began.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, TrackedRun] = {}

    @property
    def parents(self) -> list[TrackedRun]:
        """The parent runs of sweeps."""
        return [run for run in self.runs.values() if POLICY in run.tags]

    @property
    def trials(self) -> dict[str, TrackedRun]:
        """The run of each trial that has one."""
        return {run.tags[contract.TAG_TRIAL_ID]: run for run in self.runs.values() if contract.TAG_TRIAL_ID in run.tags}

    def run_of(self, tags: Mapping[str, str]) -> TrackedRun:
        """Return a trial's run, as its program finds or makes it."""
        found = self.trials.get(tags[contract.TAG_TRIAL_ID])
        experiment = self.experiments.setdefault(_EXPERIMENT, "1")
        return self.make_run(experiment, tags) if found is None else found

    def make_run(self, experiment: str, tags: Mapping[str, str]) -> TrackedRun:
        """Make a run."""
        began = int((BEGAN + self._now()) * 1000)
        made = TrackedRun(f"run-{len(self.runs)}", experiment, began, tags=dict(tags))
        self.runs[made.id] = made
        return made


class TrackerClient:
    """What the controller uses of ``MlflowClient``."""

    tracking_uri = "memory"

    def __init__(self, tracker: Tracker, perils: Perils, checks: Checks) -> None:
        self._tracker = tracker
        self._perils = perils
        self._checks = checks

    def get_experiment_by_name(self, name: str) -> SimpleNamespace | None:
        """Return an experiment."""
        self._perils.read(f"MLflow: finds experiment {name}", MlflowException)
        found = self._tracker.experiments.get(name)
        return None if found is None else SimpleNamespace(experiment_id=found)

    def create_experiment(self, name: str) -> str:
        """Make an experiment."""
        self._before("makes an experiment")
        if name in self._tracker.experiments:
            message = f"experiment {name} is there already"
            raise MlflowException(message)
        made = self._tracker.experiments[name] = str(len(self._tracker.experiments) + 1)
        self._after("makes an experiment")
        return made

    def search_experiments(self, **_: object) -> Experiments:
        """Return all experiments."""
        self._perils.read("MLflow: searches experiments", MlflowException)
        known = self._tracker.experiments.items()
        return Experiments(SimpleNamespace(experiment_id=one, name=name) for name, one in known)

    def search_runs(self, experiment_ids: Sequence[str], filter_string: str, *_: object, **__: object) -> Page:
        """Return the runs that a filter selects."""
        self._perils.read("MLflow: searches runs", MlflowException)
        runs = [run for run in self._tracker.runs.values() if run.experiment in experiment_ids]
        return Page(run.shown() for run in runs if _selects(filter_string, run))

    def get_metric_history(self, run_id: str, key: str) -> list[Metric]:
        """Return all points of a metric."""
        self._perils.read(f"MLflow: reads the points of {key}", MlflowException)
        return self._tracker.runs[run_id].history(key)

    def create_run(self, experiment_id: str, *, run_name: str, tags: Mapping[str, str]) -> Run:
        """Make a run."""
        del run_name
        self._before("makes a run")
        made = self._tracker.make_run(experiment_id, tags)
        if len(self._tracker.parents) > 1:
            self._checks.broken("a sweep has one parent run", str(self._tracker.parents))
        self._after("makes a run")
        return made.shown()

    def update_run(self, run_id: str, *, status: str) -> None:
        """Set the status of a run."""
        self._change(run_id, "sets a status").status = status
        self._after("sets a status")

    def set_terminated(self, run_id: str, status: str) -> None:
        """End a run."""
        self._change(run_id, "ends a run").status = status
        self._after("ends a run")

    def log_batch(self, run_id: str, *, tags: Sequence[RunTag]) -> None:
        """Set tags."""
        self._change(run_id, "sets tags").tags.update({str(tag.key): str(tag.value) for tag in tags})
        self._after("sets tags")

    def set_tag(self, run_id: str, key: str, value: str) -> None:
        """Set a tag."""
        self._change(run_id, "sets a tag").tags[key] = value
        self._after("sets a tag")

    def log_metric(self, run_id: str, key: str, value: float) -> None:
        """Log a point of a metric."""
        self._change(run_id, "logs a metric").log(key, value, 0, self._perils.steps.now)
        self._after("logs a metric")

    def log_text(self, run_id: str, text: str, artifact_file: str) -> None:
        """Write an artifact."""
        run = self._change(run_id, f"writes {artifact_file}")
        if artifact_file.endswith(".jsonl") and run.texts.get(artifact_file, text) != text:
            self._checks.broken("a piece of the record is written once", artifact_file)
        run.texts[artifact_file] = text
        self._after(f"writes {artifact_file}")

    def _change(self, run_id: str, what: str) -> TrackedRun:
        self._before(what)
        return self._tracker.runs[run_id]

    def _before(self, what: str) -> None:
        self._perils.write(f"MLflow: {what}", MlflowException)

    def _after(self, what: str) -> None:
        self._perils.write(f"MLflow: {what}, done", MlflowException)


def _selects(filter_string: str, run: TrackedRun) -> bool:
    """Return whether MLflow's filter, as far as the controller uses its language, takes a run."""
    ids = [part.strip(" '") for found in _IDS.findall(filter_string) for part in found.split(",")]
    return (
        all(_holds(run.tags.get(name), *rest) for name, *rest in _CLAUSE.findall(filter_string))
        and all(run.status == status for status in _STATUS.findall(filter_string))
        and all(run.began > int(began) for began in _BEGAN.findall(filter_string))
        and (not ids or run.id in ids)
    )


def _holds(value: str | None, comparison: object, wanted: object) -> bool:
    match comparison:
        case "=":
            return value == wanted
        case "!=":
            return value is not None and value != wanted
        case _:
            return value is not None and value.startswith(str(wanted).removesuffix("%"))
