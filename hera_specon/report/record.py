"""A run's folder, read back."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from controllers.core.errors import SpeconError
from controllers.core.results import RunResult
from controllers.record.timeline import TimelineError, read_timeline
from hera_specon.report.comparison import labels
from hera_specon.report.history import History, history

RUN_FILE = "run.json"
# A "+" before a digit belongs to a number such as 1e+3.
_PARAMETERS = re.compile(r":(?:[^+]|\+(?=\d))*")


class RunNotFoundError(SpeconError):
    """There is no run of that name, or none at all."""


class BrokenRunError(SpeconError):
    """A run's folder lacks something or holds something that cannot be read."""


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """The sweep under one policy; ``result`` is None where it has not finished."""

    policy: str
    history: History
    result: RunResult | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run: the fields of its ``run.json`` and what happened under each policy, in order."""

    folder: Path
    about: dict[str, Any]
    runs: tuple[PolicyRun, ...]

    def results(self) -> list[RunResult]:
        """Return the results of the policies that have finished."""
        return [run.result for run in self.runs if run.result is not None]


def find_run(run: str | None, state_dir: Path) -> Path:
    """Return the folder of ``run``: a path, a run's name, or None for the one begun last.

    Raises:
        RunNotFoundError: nothing fits; the message lists the runs that there are.
    """
    known = _known(state_dir)
    if run is None:
        if known:
            return known[-1]
        message = f"There are no runs in {state_dir / 'runs'} yet. Start one with: specon run FILE"
        raise RunNotFoundError(message)
    for folder in (Path(run), state_dir / "runs" / run):
        if (folder / RUN_FILE).is_file():
            return folder
    raise RunNotFoundError(_not_found(run, known, state_dir))


def _known(state_dir: Path) -> list[Path]:
    """Return the folders of all runs, the one begun last at the end."""
    files = (state_dir / "runs").glob(f"*/{RUN_FILE}")
    return [file.parent for file in sorted(files, key=lambda file: (file.stat().st_mtime, file))]


def _not_found(run: str, known: Sequence[Path], state_dir: Path) -> str:
    names = ", ".join(folder.name for folder in known) or "none"
    return (
        f"No run {run!r}: it is neither a folder with a {RUN_FILE} nor a name in {state_dir / 'runs'} "
        f"(there: {names}). Give one of those, or --state-dir."
    )


def load_run(folder: Path) -> RunRecord:
    """Read a run's folder.

    Raises:
        BrokenRunError: a file is missing or unreadable; the message names it.
    """
    about = _json(folder / RUN_FILE)
    parts = parts_of(folder)
    if not parts:
        message = f"{folder} has no timeline yet: nothing has run in it. Start it again with: specon run"
        raise BrokenRunError(message)
    specs = about.get("policies") or []
    runs = [_policy_run(part, specs[i : i + 1]) for i, part in enumerate(parts)]
    return RunRecord(folder, about, told_apart(runs, specs))


def parts_of(folder: Path) -> list[Path]:
    """Return the folders of the policies that a run has begun, in order."""
    return sorted(path for path in folder.iterdir() if (path / "timeline.jsonl").is_file())


def combined(records: Sequence[RunRecord]) -> RunRecord:
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
        PolicyRun(name, run.history, replace(run.result, policy=name) if run.result else None)
        for run, name in zip(runs, names, strict=True)
    )


def _policy_run(part: Path, spec: Sequence[str]) -> PolicyRun:
    name = part.name.partition("-")[2]
    try:
        events = list(read_timeline(part / "timeline.jsonl"))
    except TimelineError as error:
        raise BrokenRunError(str(error)) from error
    told = history(events)
    file = part / "result.json"
    result = _result(file) if file.is_file() else None
    if result is not None:
        name = result.policy
    elif spec:
        name = _PARAMETERS.sub("", spec[0])
    return PolicyRun(name, told, result)


def _result(file: Path) -> RunResult:
    try:
        return RunResult.from_dict(_json(file))
    except (KeyError, TypeError) as error:
        message = f"{file} is not a result that specon wrote: {error}. Run the sweep again with --fresh."
        raise BrokenRunError(message) from error


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"Cannot read {file}: {error}"
        raise BrokenRunError(message) from error
    if not isinstance(data, dict):
        message = f"{file} should hold a JSON object, not {type(data).__name__}"
        raise BrokenRunError(message)
    return data
