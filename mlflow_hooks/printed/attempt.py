"""An attempt of a trial whose program knows nothing of trials: what it prints is journalled as what hooks log is."""

import json
import os
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from mlflow_hooks import contract
from mlflow_hooks.contract import EXIT_MIGRATE
from mlflow_hooks.delivery import find_run, sends_itself
from mlflow_hooks.going_on import beginning_of, goes_on
from mlflow_hooks.interruption import Ownership, leave_message
from mlflow_hooks.journal import POINTS, mark_sent, points_of
from mlflow_hooks.leave_file import LeaveFile
from mlflow_hooks.printed.form import PrintedForm
from mlflow_hooks.printed.metric_steps import MetricSteps
from mlflow_hooks.printed.program import ReadProgram
from mlflow_hooks.printed.reader import PrintedReader, PrintedValues
from mlflow_hooks.record import Record
from mlflow_hooks.sender import short_timeouts
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import Identity, Run, read_object, report, write_run, write_whole
from mlflow_hooks.store_use import ask_patiently, open_elsewhere
from mlflow_hooks.tracking_server import TrackingError, tracking_server

COUNTS: Final = "printed.json"
"""How many values of each metric a program had printed when it last left by itself; there from its first attempt on."""
_BEGUN_AGAIN: Final = "begun-again.json"
"""How often a program began again from nothing, as far as the steps that it printed tell; there where it did."""
_LEAVING_FLUSH_S: Final = 2.0
_MARGIN_S: Final = 4.0
"""What is left of the grace for the flush and the end, once the store has all."""
_LAST_UPLOAD_S: Final = 600.0
_ENDED_BY_SIGTERM: Final = 143
_CHECKPOINTS_S: Final = 3600.0
_LAST_LINES: Final = 5
_LONGEST_TOLD: Final = 200


class PrintedAttempt:
    """Keeps what one attempt's program prints, and tells MLflow how it ended.

    Args:
        settings: of the attempt.
        form: what the program's lines look like.
        program: what will run.
    """

    def __init__(self, settings: AttemptSettings, form: PrintedForm, program: ReadProgram) -> None:
        short_timeouts()
        self._settings = settings = _with_folder(settings)
        self._objective = settings.objective or ""
        self._program = program
        stop = self._stop = program.stop
        self._leave_file = LeaveFile(settings, stop)
        self._owner = Ownership(settings.folder, settings.attempt)
        mirror, _ = open_elsewhere(settings)
        if mirror is not None and (error := ask_patiently(mirror.take_over, lambda: stop.heard)) is not None:
            leave_message(f"left, since the store of checkpoints does not answer: {error}")
            raise SystemExit(EXIT_MIGRATE)
        self._record = Record(settings, self._owner, _CHECKPOINTS_S, mirror)
        self._reader = PrintedReader(form, self._objective, time.monotonic)
        self._counts = _counts_of(settings.folder)
        before = points_of(settings.folder)
        self._before = beginning_of(point.step for point in before if point.key == self._objective)
        self._by_name = MetricSteps(self._counts) if form.by_name else None
        self._steps: dict[str, int] = {}
        self._back: dict[str, tuple[int, object]] = {}
        self._newest_values: dict[str, tuple[int, object]] = {}
        self._with_objective = self._failed = False
        self._newest: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._record.start_sending()

    def take(self, stream: int, printed: bytes) -> None:
        """Keep the values in what came by a stream."""
        self._newest.extend(printed.splitlines()[-_LAST_LINES:])
        if not self._owner.held_lately():
            self._program.kill()  # asked to leave, it would save over what the newer attempt has
            return
        try:
            self._log(self._reader.read(stream, printed))
        except Exception as error:  # noqa: BLE001 - the training is worth more than its metrics
            if not self._failed:
                report(f"cannot keep what was printed ({type(error).__name__}: {error}); the training continues")
            self._failed = True

    def end(self, code: int) -> int:
        """Note that the program ended with ``code``, send the rest to MLflow, and return the code to end with.

        A program that was asked has left, whatever its exit code. To Argo, only some codes tell that.
        """
        self._leave_file.close()
        if self._stop.heard and code != EXIT_MIGRATE and os.environ.get(contract.ENV_SENDER) != contract.SENDER_SWEEP:
            code = _ENDED_BY_SIGTERM
        if not self._owner.held():
            report(f"a newer attempt has {self._settings.trial_id}: this one was killed, and leaves")
            leave_message("left to a newer attempt")
            self._record.close()
            return EXIT_MIGRATE
        self._log(self._reader.last())
        if not self._record.still_ours():
            report("the program has the hooks itself: what it logs counts, and not what it prints")
        elif code == EXIT_MIGRATE or self._stop.heard:
            self._leave(code)
        else:
            self._tell_what_was_missed(code)
            self._record.end("FINISHED" if code == 0 else "FAILED")
            if not self._record.settle(_LAST_UPLOAD_S) and code == 0:
                self._record.send_unkept()
            self._record.flush(self._settings.flush_s)
        self._record.leave_beside(code)
        self._record.close()
        return code

    def _leave(self, code: int) -> None:
        if code == EXIT_MIGRATE:
            _keep_counts(self._settings.folder, self._counts)
            leave_message("left, so that the next attempt goes on from what the program saved itself")
        self._record.settle(self._stop.seconds_left(self._settings.grace_s - _MARGIN_S, _LAST_UPLOAD_S))
        self._record.flush(_LEAVING_FLUSH_S)

    def _log(self, found: Sequence[PrintedValues]) -> None:
        for note in self._reader.notes:
            report(note)
        self._reader.notes.clear()
        self._with_objective = self._with_objective or any(self._objective in line.values for line in found)
        self._judge(found)
        if self._by_name is not None:
            self._log_by_name(found, self._by_name)
            return
        for line in found:
            if line.step is None:
                self._count(line.values)
                continue
            for name, value in line.values.items():
                self._log_at(line.step, name, value)

    def _judge(self, found: Sequence[PrintedValues]) -> None:
        """Note that the program has begun again from nothing, if the first step of its objective tells so."""
        line = next((line for line in found if self._objective in line.values), None)
        if not self._before or line is None:
            return
        first = self._counts.get(self._objective, 0) if line.step is None else line.step
        if not goes_on(self._before, first):
            with suppress(OSError):  # a disk that fails must not end a training
                times = begun_again(self._settings.folder) + 1
                write_whole(self._settings.folder / _BEGUN_AGAIN, json.dumps({"times": times}))
        self._before = ()

    def _log_at(self, step: int, name: str, value: object) -> None:
        """Journal a value with a step, if it is the first at that.

        A progress bar tells a step again and again, and MLflow would keep all of it. One line with a smaller step may
        sum up, such as the best epoch; with two of them that grow, a second phase counts from the beginning again.
        """
        newest, back = self._steps.get(name, -1), self._back.get(name)
        if step < newest and (back is None or step <= back[0]):
            self._back[name] = step, value
        elif step != newest:
            if step < newest and back is not None:
                self._record.log({name: back[1]}, back[0])
            self._back.pop(name, None)
            self._steps[name] = step
            self._record.log({name: value}, step)

    def _log_by_name(self, found: Sequence[PrintedValues], steps: MetricSteps) -> None:
        """Log all values; of a step that comes again at once the last, as MLflow takes a millisecond's highest."""
        at: dict[int, dict[str, object]] = {}
        for line in found:
            for name, value in line.values.items():
                at.setdefault(steps.step_of(name, line.step), {})[name] = value
        for step, values in sorted(at.items()):
            self._record.log({name: value for name, value in values.items() if self._is_news(name, step, value)}, step)

    def _is_news(self, name: str, step: int, value: object) -> bool:
        """Return whether a value is another than the last one of its step: a progress bar tells it again and again."""
        news = self._newest_values.get(name) != (step, value)
        self._newest_values[name] = (step, value)
        return news

    def _count(self, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            step = self._counts.get(name, 0)
            self._counts[name] = step + 1
            self._record.log({name: value}, step)

    def _tell_what_was_missed(self, code: int) -> None:
        if self._reader.dropped:
            report(f"metrics were printed too fast: {self._reader.dropped} bytes of lines were left out")
        if self._reader.odd_step:
            report(f"the step {self._reader.odd_step!r} is no whole number: lines with such a step were left out")
        if code == 0 and not self._with_objective:
            lines = [line[:_LONGEST_TOLD].decode(errors="backslashreplace") for line in self._newest]
            told = "; the last lines were:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""
            report(f"no line that was printed told the objective {self._objective!r}{told}")


def program_environment() -> dict[str, str]:
    """Return this process's environment without what lets MLflow's library in the program join the trial's run.

    Python in the program holds nothing back that it prints, unless the environment says otherwise.
    """
    ours = {contract.ENV_RUN, contract.ENV_RUN_CONTEXT, contract.ENV_PRINTED}
    return {"PYTHONUNBUFFERED": "1"} | {name: value for name, value in os.environ.items() if name not in ours}


def is_read(folder: Path) -> bool:
    """Return whether the trial in ``folder`` is a program whose printed metrics are read: it saves what it saves."""
    return (folder / COUNTS).exists()


def begun_again(folder: Path) -> int:
    """Return how often the program of the trial in ``folder`` began again, as far as what it printed tells."""
    times = read_object(folder / _BEGUN_AGAIN).get("times", 0)
    return times if isinstance(times, int) else 0


def _counts_of(folder: Path) -> dict[str, int]:
    counts = {name: count for name, count in read_object(folder / COUNTS).items() if isinstance(count, int)}
    if not is_read(folder):
        _keep_counts(folder, counts)
    return counts


def _keep_counts(folder: Path, counts: dict[str, int]) -> None:
    with suppress(OSError):  # a disk that fails must not end a training
        write_whole(folder / COUNTS, json.dumps(counts))


def _with_folder(settings: AttemptSettings) -> AttemptSettings:
    """Return ``settings`` with a folder that can be written to: of this attempt alone, where the trial has none.

    What earlier attempts logged is in MLflow alone then. Its newest points are journalled as those that it has, so that
    no step comes twice.
    """
    with suppress(OSError):
        settings.folder.mkdir(parents=True, exist_ok=True)
        if os.access(settings.folder, os.W_OK):
            return settings
    try:
        alone = replace(settings, folder=Path(tempfile.mkdtemp(prefix="specon-"), settings.trial_id))
        alone.folder.mkdir()
    except OSError as error:
        report(f"there is no folder to keep metrics in ({error}); the training goes on without them")
        return settings
    if sends_itself():
        try:
            server = tracking_server()
            run = find_run(server, Identity.of(settings))
            known = b"".join(point.encode() for point in (server.newest_points(run) if run else ()))
        except TrackingError as error:
            report(f"MLflow does not tell what earlier attempts logged ({error}); steps may come twice")
        else:
            if run:
                write_run(alone.folder, Run(run))
            (alone.folder / POINTS).write_bytes(known)
            mark_sent(alone.folder, len(known))
    return alone
