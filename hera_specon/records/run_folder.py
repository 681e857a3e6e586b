"""Read the folder of a run on this machine: its record, and how far it has come."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any

from controllers.core.actions import Assessment
from controllers.core.aims import NO_AIMS, Aims, read_aims
from controllers.core.errors import SpeconError
from controllers.core.forecast import Forecast
from controllers.core.labels import LABEL_SWEEP
from controllers.core.model import Category, Direction, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.core.objectives import missing_objectives
from controllers.core.parameters import bound_parameters
from controllers.core.promises import promises_told
from controllers.core.results import RunResult, TrialResult, told_again, told_remarks
from controllers.core.stop_rules import why_ended
from controllers.record.forecasts import FORECASTS_FILE, ToldForecast, read_forecasts
from controllers.record.timeline import EventKind, TimelineError, TimelineEvent, read_timeline
from controllers.worlds.local.engine_files import PolicyFile
from controllers.worlds.local.jobs import file_name, load_ledger
from controllers.worlds.local.stand_ins import WORK
from controllers.worlds.local.trusted_folders import check_trusted
from controllers.worlds.local.working_folders import made_before
from hera_specon import formatting
from hera_specon.records.comparison import labels
from hera_specon.records.history import SweepHistory, history
from hera_specon.sweep_state import SweepState, TrialProcesses
from mlflow_hooks.foreign_json import parsed

RUN_FILE = "run.json"
Events = Sequence[TimelineEvent]
Reader = Callable[[Path], Iterable[TimelineEvent]]
"""Reads the timeline at a path."""
# A "+" before a digit belongs to a number such as 1e+3.
_PARAMETERS = re.compile(r":(?:[^+]|\+(?=\d))*")


class RunNotFoundError(SpeconError):
    """There is no run of that name, or none at all."""


class BrokenRunError(SpeconError):
    """A run's folder lacks something or holds something that cannot be read."""


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """The sweep under one policy; ``result`` is None where it has not finished. ``forecasts`` may be missing."""

    policy: str
    history: SweepHistory
    result: RunResult | None
    forecasts: tuple[ToldForecast, ...] = ()


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run: the fields of its ``run.json`` and what happened under each policy, in order."""

    folder: Path
    about: dict[str, Any]
    runs: tuple[PolicyRun, ...]

    def results(self) -> list[RunResult]:
        """Return the results of the policies that have finished."""
        return [run.result for run in self.runs if run.result is not None]


def known_runs(state_dir: Path) -> list[Path]:
    """Return the folders of the runs in a state folder, the one begun last at the end.

    Raises:
        UntrustedFolderError: somebody else may have prepared them.
    """
    check_trusted(state_dir)
    files = (state_dir / "runs").glob(f"*/{RUN_FILE}")
    return [file.parent for file in sorted(files, key=lambda file: (file.stat().st_mtime, file))]


def find_run(run: str | None, state_dir: Path) -> Path:
    """Return the folder of ``run``: a path, a run's name, or None for the one begun last.

    Raises:
        RunNotFoundError: nothing fits; the message lists the runs that there are.
        UntrustedFolderError: somebody else may have prepared it.
    """
    known = known_runs(state_dir)
    if run is None:
        if known:
            check_trusted(known[-1])
            return known[-1]
        message = f"There are no runs in {state_dir / 'runs'} yet. Start one with: specon run FILE"
        raise RunNotFoundError(message)
    for folder in (Path(run), state_dir / "runs" / run):
        if (folder / RUN_FILE).is_file():
            check_trusted(folder)
            return folder
    names = ", ".join(folder.name for folder in known) or "none"
    message = (
        f"No run {run!r}: it is neither a folder with a {RUN_FILE} nor a name in {state_dir / 'runs'} "
        f"(there: {names}). Give one of those, or --state-dir."
    )
    raise RunNotFoundError(message)


def load_run(folder: Path, read: Reader = read_timeline) -> RunRecord:
    """Read a run's folder, its timelines by ``read``.

    Raises:
        BrokenRunError: a file is missing or unreadable; the message names it.
    """
    about = _json(folder / RUN_FILE)
    parts = parts_of(folder)
    if not parts:
        message = f"{folder} has no timeline yet: nothing has run in it. Start it again with: specon run"
        raise BrokenRunError(message)
    specs = about.get("policies") or []
    runs = [_policy_run(part, specs[i : i + 1], read) for i, part in enumerate(parts)]
    return RunRecord(folder, about, told_apart(runs, specs))


def parts_of(folder: Path) -> list[Path]:
    """Return the folders of the policies that a run has begun, in order."""
    return sorted(path for path in folder.iterdir() if (path / "timeline.jsonl").is_file())


def newest_checkpoint(part: Path, trial: str) -> Path | None:
    """Return the newest checkpoint of a trial under the policy whose folder ``part`` is; None where it left none."""
    kept = (part / "state").glob(f"*.{escape(trial)}/checkpoints/step-*")
    return max(kept, key=lambda folder: formatting.natural(folder.name), default=None)


def own_folder(part: Path, trial: str) -> Path | None:
    """Return the working folder of a trial's own under the policy whose folder ``part`` is; None where it has none."""
    return next(filter(None, map(made_before, (part / WORK).glob(f"*.{escape(trial)}"))), None)


def combine_records(records: Sequence[RunRecord]) -> RunRecord:
    """Return several records as one, to be compared with the first; policies are told apart by their runs."""
    if len(records) == 1:
        return records[0]
    titles = [str(record.about.get("name") or record.folder.name) for record in records]
    runs = [
        (f"{run.policy} · {title}", run) for title, record in zip(titles, records, strict=True) for run in record.runs
    ]
    about = {**records[0].about, "name": ", ".join(titles)}
    return RunRecord(records[0].folder, about, told_apart([run for _, run in runs], [spec for spec, _ in runs]))


def told_apart(runs: Sequence[PolicyRun], specs: Sequence[str]) -> tuple[PolicyRun, ...]:
    """Return ``runs`` under names that differ: their policies' names, or ``specs`` where those are not enough."""
    names = labels([run.policy for run in runs], specs)
    return tuple(
        replace(run, policy=name, result=replace(run.result, policy=name) if run.result else None)
        for run, name in zip(runs, names, strict=True)
    )


def _policy_run(part: Path, spec: Sequence[str], read: Reader) -> PolicyRun:
    name = part.name.partition("-")[2]
    try:
        events = list(read(part / "timeline.jsonl"))
    except TimelineError as error:
        raise BrokenRunError(str(error)) from error
    forecasts = tuple(read_forecasts(part / FORECASTS_FILE))
    file = part / "result.json"
    if not file.is_file():
        return PolicyRun(_PARAMETERS.sub("", spec[0]) if spec else name, history(events), None, forecasts)
    try:
        result = RunResult.from_dict(_json(file))
    except (KeyError, TypeError) as error:
        message = f"{file} is not a result that specon wrote: {error}. Run the sweep again with --fresh."
        raise BrokenRunError(message) from error
    return PolicyRun(result.policy, history(events), result, forecasts)


def _json(file: Path) -> dict[str, Any]:
    try:
        data = parsed(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"Cannot read {file}: {error}"
        raise BrokenRunError(message) from error
    if not isinstance(data, dict):
        message = f"{file} should hold a JSON object, not {type(data).__name__}"
        raise BrokenRunError(message)
    return data


def run_states(folder: Path, read: Reader = read_timeline) -> list[SweepState]:
    """Return how the sweep stands under each policy that it was run under so far; ``read`` reads the timelines.

    Raises:
        BrokenRunError: The folder lacks something or holds something that cannot be read.
    """
    record = load_run(folder, read)
    name = str(record.about.get("name") or folder.name)
    direction = Direction(record.about.get("direction") or Direction.MINIMIZE)
    try:
        aims = read_aims(*(str(record.about.get(text) or "") for text in ("further_objectives", "constraints")))
    except ValueError:  # of a file that somebody wrote
        aims = NO_AIMS
    pairs = zip(parts_of(folder), record.runs, strict=True)
    return [_state(name, part, run, direction, aims, read) for part, run in pairs]


def _state(name: str, part: Path, run: PolicyRun, direction: Direction, aims: Aims, read: Reader) -> SweepState:
    by_trial: dict[str, list[TimelineEvent]] = {}
    for event in read(part / "timeline.jsonl"):
        by_trial.setdefault(event.trial, []).append(event)
    reasons = {}
    for trial, events in by_trial.items():
        acted = (event.reason for event in reversed(events) if event.kind is not EventKind.OUTLOOK)
        reasons[TrialId(trial)] = next((reason for reason in acted if reason), "")
    params = {trial.id: bound_parameters(trial.params) for trial in run.result.trials} if run.result else {}
    trials = [
        replace(_trial(name, by_trial[name], direction), parameters=params.get(name, ()), aims=aims)
        for name in by_trial
    ]
    if run.result is not None:
        trials = _with_results(trials, run.result)
    stopped = _stopped(part, run)
    return SweepState(
        name=name,
        where=f"on this machine, in {part}",
        phase="running or interrupted" if run.result is None else "ended",
        policy=f"{run.policy}, then {now}" if (now := PolicyFile(part).read()) else run.policy,
        steered="its own specon run steers it" if run.result is None else "it is over",
        total=len(by_trial),
        snapshot=Snapshot(run.history.end, tuple(trials), ()),
        assessments={TrialId(trial): _assessment(events) for trial, events in by_trial.items()},
        reasons=reasons,
        forecast=_newest(run.forecasts),
        over=run.result is not None,
        warnings=_warnings(part, run),
        endings=why_ended(stopped),
        promises=promises_told(stopped),
        places=_places(part),
    )


def _places(part: Path) -> dict[TrialId, TrialProcesses]:
    """Return where the trials run, by their short ids; nothing where the ledger cannot be read."""
    try:
        jobs = load_ledger(part / "ledger.json").jobs.values()
    except (OSError, SpeconError):
        return {}
    places = {}
    for job in (job for job in jobs if job.trial):
        pids = tuple(process.pid for process in job.processes if job.placed and process.alive)
        own = made_before(part / WORK / file_name(job.trial))
        places[TrialId(job.trial.partition(".")[2])] = TrialProcesses(pids, str(own or ""))
    return places


def _warnings(part: Path, run: PolicyRun) -> tuple[str, ...]:
    """Return what is wrong with the trials: with their objectives, and which of them began again from nothing."""
    if run.result is not None:
        again = {trial.id: trial.begun_again for trial in run.result.trials}
        remarks = told_remarks({trial.id: trial.remark for trial in run.result.trials})
        return (*missing_objectives(run.result).lines, *told_again(again), *remarks)
    jobs = load_ledger(part / "ledger.json").jobs.values()
    return tuple(told_again({formatting.short_id(job.trial): job.begun_again for job in jobs}))


def _stopped(part: Path, run: PolicyRun) -> list[tuple[str, str]]:
    """Return the sweep of each trial, and why that was stopped, empty where it was not."""
    if run.result is not None:
        return [(trial.sweep, trial.stopped) for trial in run.result.trials]
    jobs = load_ledger(part / "ledger.json").jobs.values()
    return [(job.step.labels.get(LABEL_SWEEP, ""), job.stop) for job in jobs]


def _newest(told: Sequence[ToldForecast]) -> Forecast | None:
    """Return what was foreseen last of the sweep and of each trial."""
    if not told:
        return None
    trials = {TrialId(trial): end for forecast in told for trial, end in forecast.trials.items()}
    return Forecast(told[-1].at, told[-1].end, trials=trials)


def _trial(name: str, events: Events, direction: Direction) -> Trial:
    newest = _last(events, EventKind.PHASE)
    phase = Phase(newest.phase or Phase.PENDING)
    nodes = tuple(NodeName(node) for node in newest.places)
    shares = [event.cpu for event in events if event.cpu is not None] or [0.0]
    report = _last(events, EventKind.REPORT)
    values = [event.value for event in events if event.kind is EventKind.REPORT and event.value is not None]
    totals = [event.steps_total for event in events if event.steps_total is not None]
    return Trial(
        id=TrialId(name),
        phase=phase,
        cpu=shares[-1],
        base_cpu=shares[0],
        memory=0.0,
        direction=direction,
        submitted_at=events[0].at,
        nodes=nodes if phase not in {Phase.PENDING, Phase.SUSPENDED} else (),
        workers=next((len(event.places) for event in reversed(events) if event.places), 1),
        attempt=newest.attempt or 0,
        moves=sum(event.kind is EventKind.MOVE for event in events),
        sweep=name.rpartition(".")[0],
        progress=Progress(
            first=values[0],
            best=min(values) if direction is Direction.MINIMIZE else max(values),
            latest=values[-1],
            step=report.step or 0,
            at=report.at,
            steps_total=totals[-1] if totals else None,
            also=tuple((report.also or {}).items()),
        )
        if values
        else None,
    )


def _with_results(trials: list[Trial], result: RunResult) -> list[Trial]:
    """Return ``trials`` with what they came to by what their sweep wants beside its first objective."""
    result_of: dict[str, TrialResult] = {trial.id: trial for trial in result.trials if trial.aims}
    return [
        trial
        if (of := result_of.get(trial.id)) is None
        else replace(
            trial,
            aims=of.aims,
            sweep=of.sweep,
            diverged=of.diverged,
            progress=trial.progress and replace(trial.progress, also=tuple(of.values.items())),
        )
        for trial in trials
    ]


def _assessment(events: Events) -> Assessment:
    judged = _last(events, EventKind.CATEGORY)
    category = Category(judged.category) if judged.category else None
    return Assessment(category, judged.value, _last(events, EventKind.OUTLOOK).reason or "")


def _last(events: Events, kind: EventKind) -> TimelineEvent:
    """Return the newest event of ``kind``, one that tells nothing where there is none."""
    return next((event for event in reversed(events) if event.kind is kind), TimelineEvent(0.0, kind, ""))
