"""Read the record of a sweep that ran in a cluster out of MLflow.

All that is read is untrusted: bounded, checked, escaped.
"""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from mlflow.entities import FileInfo, Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from pydantic import TypeAdapter

from controllers.core.errors import SpeconError
from controllers.core.model import Category, Phase
from controllers.core.results import RunResult
from controllers.record.forecasts import forecasts_in
from controllers.record.timeline import TimelineEvent
from controllers.tracking.access import shown
from controllers.tracking.downloads import ArtifactTooLargeError, artifact_text
from controllers.tracking.logins import check_artifacts
from hera_specon.records.history import history
from hera_specon.records.run_folder import BrokenRunError, PolicyRun, RunNotFoundError, RunRecord, told_apart
from mlflow_hooks.contract import TAG_SWEEP_ID, TAG_TRIAL_ID

TAG_POLICY: Final = "specon.policy"
TAG_SPEC: Final = "specon.policy_spec"
_PIECE: Final = re.compile(r"(?:timeline|forecasts)/(\d{1,16})-(\d{1,9})\.jsonl")
_RESULT: Final = "result.json"
_MOST_PIECES: Final = 20_000
_MOST_BYTES: Final = 256 * 2**20
"""Of all pieces of a timeline together."""
_MOST_LINE: Final = 64 * 2**10
_MOST_FORECAST: Final = 2**20
"""Characters of a forecast: it may hold a range for each of thousands of trials."""
_MOST_TEXT: Final = 200
_MOST_RESULT: Final = 64 * 2**20
_MOST_TRIALS: Final = 100_000
_MOST_WORKERS: Final = 4096
_MOST_RUNS: Final = 50
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_EVENT: Final = TypeAdapter(TimelineEvent)
_RESULT_TYPE: Final = TypeAdapter(RunResult)


def tracked_record(client: MlflowClient, wanted: str) -> RunRecord:
    """Return the sweep that ``wanted`` names, under each policy that it ran under.

    Args:
        client: A client of the tracking server.
        wanted: Id of a sweep's run, id of a sweep (``<workflow uid>.<sweep>``), or name of a workflow.

    Raises:
        SpeconError: MLflow does not answer, the sweep is not there, or what is there makes no sense.
    """
    try:
        parents = sweep_runs(client, wanted)
        runs = [_policy_run(client, parent) for parent in parents]
    except (MlflowException, OSError) as error:
        message = f"MLflow does not answer: {str(error)[:300]}"
        raise SpeconError(message) from error
    specs = [str(parent.info.run_name)[:_MOST_TEXT] for parent in parents]
    return RunRecord(Path(), {"name": wanted, "tracking_uri": shown(client.tracking_uri)}, told_apart(runs, specs))


def sweep_runs(client: MlflowClient, wanted: str) -> list[Run]:
    """Return the runs of the sweep that ``wanted`` names, one for each policy, as ``tracked_record`` takes them.

    Raises:
        RunNotFoundError: MLflow has none.
    """
    if not _NAME.fullmatch(wanted):
        message = f"{wanted!r} is no id or name of a sweep"
        raise RunNotFoundError(message)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    questions = (
        f"attributes.run_id = '{wanted}'",
        f"tags.`{TAG_SWEEP_ID}` = '{wanted}' AND tags.`{TAG_POLICY}` != ''",
        f"attributes.run_name LIKE '{wanted} %' AND tags.`{TAG_POLICY}` != ''",
    )
    for question in questions:
        runs = client.search_runs(experiments, question, max_results=_MOST_RUNS, order_by=["attributes.start_time"])
        # MLflow's LIKE takes "_" for any character, so a run that it found may be another's.
        parents = [
            run
            for run in runs
            if TAG_POLICY in run.data.tags
            and TAG_TRIAL_ID not in run.data.tags
            and wanted in {run.info.run_id, run.data.tags.get(TAG_SWEEP_ID), str(run.info.run_name).partition(" ")[0]}
        ]
        if parents:
            return parents
    where = shown(client.tracking_uri)
    message = f"MLflow at {where} has no sweep {wanted!r}: give its workflow's name, its id, or a run's id"
    raise RunNotFoundError(message)


def tracked_timeline(client: MlflowClient, parent: Run) -> list[TimelineEvent]:
    """Return what happened in the sweep with the run ``parent``, as its controllers told it.

    Raises:
        BrokenRunError: There is nothing yet, or what is there makes no sense.
    """
    run_id, lines = parent.info.run_id, _lines(client, parent, "timeline")
    if not lines:
        message = f"run {run_id} has no timeline yet: its controller has written nothing"
        raise BrokenRunError(message)
    # A controller that was cut off in an upload sends the same piece again, another may tell the same once more.
    return [_event(line, run_id) for line in dict.fromkeys(lines) if line]


def _lines(client: MlflowClient, parent: Run, folder: str) -> list[str]:
    """Return the lines of all pieces in an artifact folder, each controller's in order."""
    files = _artifacts(client, parent, folder)
    pieces = {match[0]: (int(match[1]), int(match[2])) for f in files if (match := _PIECE.fullmatch(str(f.path)))}
    sizes = {str(file.path): file.file_size for file in files}
    # Where a store does not tell sizes, what comes is counted as it comes.
    size = sum(sizes[piece] or 0 for piece in pieces)
    if len(pieces) > _MOST_PIECES or size > _MOST_BYTES:
        message = f"the {folder} of run {parent.info.run_id} is too long: {len(pieces)} pieces of {size} bytes together"
        raise BrokenRunError(message)
    lines: list[str] = []
    left = _MOST_BYTES
    for piece in sorted(pieces, key=lambda path: pieces[path]):
        text = _text(client, parent, piece, left)
        left -= len(text)
        lines += text.splitlines()
    return lines


def _artifacts(client: MlflowClient, parent: Run, folder: str | None = None) -> list[FileInfo]:
    """Return the files of a run in an artifact folder, at its root for None.

    Raises:
        ForeignAddressError: They lie on another server, which would get the reader's login.
    """
    check_artifacts(client, parent.info.run_id, str(parent.info.artifact_uri))
    return list(client.list_artifacts(parent.info.run_id, folder))


def policy_of(parent: Run) -> str:
    """Return the policy that a sweep ran under, with its parameters where these were kept."""
    tags = parent.data.tags
    return str(tags.get(TAG_SPEC) or tags[TAG_POLICY])[:_MOST_TEXT]


def _policy_run(client: MlflowClient, parent: Run) -> PolicyRun:
    events = tracked_timeline(client, parent)
    lines = (line for line in _lines(client, parent, "forecasts") if len(line) <= _MOST_FORECAST)
    forecasts = tuple(forecasts_in(dict.fromkeys(lines)))
    policy = policy_of(parent)
    sizes = {file.path: file.file_size for file in _artifacts(client, parent)}
    if _RESULT not in sizes:
        return PolicyRun(policy, history(events), None, forecasts)
    if (sizes[_RESULT] or 0) > _MOST_RESULT:
        raise _too_large(_RESULT, parent, _MOST_RESULT)
    text = _text(client, parent, _RESULT, _MOST_RESULT)
    try:
        result = _RESULT_TYPE.validate_json(text)
    except ValueError as error:
        message = f"{_RESULT} is not a result that specon wrote: {str(error)[:300]}"
        raise BrokenRunError(message) from error
    times = (time for t in result.trials for time in (t.submitted_s, t.completed_s, t.deadline_s or 0.0))
    if not 0 < len(result.trials) <= _MOST_TRIALS or not all(math.isfinite(time) for time in times):
        message = f"{_RESULT} has no trials, more than {_MOST_TRIALS}, or times that are no numbers"
        raise BrokenRunError(message)
    if any(not 1 <= trial.workers <= _MOST_WORKERS for trial in result.trials):
        message = f"{_RESULT} has a trial of no worker, or of more than {_MOST_WORKERS}"
        raise BrokenRunError(message)
    return PolicyRun(policy, history(events), result, forecasts)


def _text(client: MlflowClient, parent: Run, path: str, most: int) -> str:
    """Return an artifact of at most ``most`` bytes, whose path was checked before."""
    try:
        return artifact_text(client, parent, path, most)
    except ArtifactTooLargeError as error:
        raise _too_large(path, parent, most) from error


def _too_large(path: str, parent: Run, most: int) -> BrokenRunError:
    return BrokenRunError(f"{path} of run {parent.info.run_id} has more than the {most} bytes that are read")


def _event(line: str, run: str) -> TimelineEvent:
    message = f"the timeline of run {run} holds what is no event: {line[:80]!r}"
    if len(line) > _MOST_LINE:
        raise BrokenRunError(message)
    try:
        event = _EVENT.validate_json(line)
    except ValueError as error:
        raise BrokenRunError(message) from error
    if not math.isfinite(event.at) or (event.phase or Phase.PENDING) not in set(Phase):
        raise BrokenRunError(message)
    return replace(event, category=event.category if event.category in set(Category) else None)
