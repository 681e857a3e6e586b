"""The trial itself: where it goes on, what it logs, when it saves, and when it leaves."""

import signal
import traceback
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from mlflow_hooks.checkpoints import STUTTERS, Checkpoints, Saving
from mlflow_hooks.contract import EXIT_MIGRATE
from mlflow_hooks.delivery import sending_wanted
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.interruption import Ownership, StopRequest, leave_beside
from mlflow_hooks.journal import Journal
from mlflow_hooks.metrics import Metrics
from mlflow_hooks.sender import Sender, short_timeouts
from mlflow_hooks.settings import Settings, read_settings
from mlflow_hooks.state_folder import Ending, Identity, forget_ending, report, write_ending, write_identity
from mlflow_hooks.states import State
from mlflow_hooks.threads import ThreadSearch, follow_share, prepare_threads

LEAVING_FLUSH_S: Final = 2.0
"""How long an attempt that leaves waits for MLflow; the next attempt sends the rest."""
_ENDED_BY_SIGTERM: Final = 128 + signal.SIGTERM
"""The exit code of a shell whose command SIGTERM ended; Lightning ends with it too."""


class MigrationExit(SystemExit):
    """Ends an attempt that goes on elsewhere or that a newer attempt has replaced: exit code 75."""

    def __init__(self) -> None:
        super().__init__(EXIT_MIGRATE)


def trial(
    params: Mapping[str, Any] | None = None,
    objective: str | None = None,
    direction: str | None = None,
    *,
    checkpoint_every_s: float = 10.0,
    flush_s: float = 10.0,
) -> "Trial":
    """Make this script one attempt of a trial, to be used in a ``with`` statement.

    All arguments but ``checkpoint_every_s`` are defaults: what a sweep sets in the environment wins.

    Args:
        params: hyperparameters, by name.
        objective: name of the metric that says how good the model is.
        direction: ``"minimize"`` or ``"maximize"``.
        checkpoint_every_s: seconds between periodic checkpoints; they come less often where
            saving would take more than 5 % of the time.
        flush_s: seconds to wait at the end for MLflow to take the rest.

    Raises:
        BadEnvironmentError: naming the variable or argument, and its value.
    """
    for name, seconds in (("checkpoint_every_s", checkpoint_every_s), ("flush_s", flush_s)):
        if not seconds >= 0:
            message = f"{name} must be 0 or more seconds, not {seconds!r}"
            raise BadEnvironmentError(message)
    return Trial(read_settings(params, objective, direction, flush_s), checkpoint_every_s)


class Trial:
    """One attempt of a trial. Made by ``trial()``; alive from the start of its ``with`` block.

    Attributes:
        settings: what the attempt was told: ids, folder, sweep.
        params: hyperparameters.
        objective: name of the objective metric, where known.
        next_step: the first step (0-based) that is not done.
        step: the step that ``log`` speaks of by itself.
    """

    def __init__(self, settings: Settings, checkpoint_every_s: float) -> None:
        self.settings = settings
        self.params = settings.params
        self.objective = settings.objective
        self._total: int | None = None
        self._trained = False
        self._stop = StopRequest()
        self._stop.listen()
        prepare_threads()
        short_timeouts()
        self._owner = Ownership(settings.folder, settings.attempt)
        self._settled = False
        self._complained = False
        self._settle()
        self._journal = Journal(settings.folder, self._owner.held)
        self._saving = Saving(Checkpoints(settings.folder / "checkpoints"), self._owner, checkpoint_every_s)
        found = self._saving.found
        self.step = self.next_step = found.step if found else 0
        self._metrics = Metrics(self._journal, self.objective, found.cpu_seconds if found else 0.0)
        self._sender = Sender(settings.folder, self._owner.held) if sending_wanted() else None
        self._threads = ThreadSearch(settings.folder)

    def _settle(self) -> None:
        """Make the folder this attempt's own; where the disk fails, it trains without, and tries again at each save."""
        folder = self.settings.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._owner.claim()
            if not self._owner.lost:
                forget_ending(folder)
                write_identity(folder, Identity.of(self.settings))
        except OSError as error:
            if not self._complained:
                report(f"cannot write to {folder} ({error}); the training begins without")
            self._complained = True
        else:
            self._settled = True

    @property
    def stopping(self) -> bool:
        """Whether this attempt was asked to leave, or a newer one has replaced it."""
        return self._stop.asked or self._owner.lost

    @property
    def saved(self) -> bool:
        """Whether the newest checkpoint holds every step that is done, so that leaving loses only the one under way."""
        return self._saving.saved_step == self.next_step

    @property
    def saving_due(self) -> bool:
        """Whether ``save_or_leave`` would save now, for frameworks that must be told before they can."""
        return self._saving.due() or self.stopping

    @property
    def run_id(self) -> str | None:
        """The trial's MLflow run; None until it is open, which happens in the background."""
        return self._sender.run_id if self._sender else None

    def track(self, state: State, name: str | None = None) -> None:
        """Keep ``state`` in each checkpoint, and restore it now if there is a whole checkpoint.

        Args:
            state: what must come back.
            name: its folder in a checkpoint; by default its place in the order of calls.

        Raises:
            MigrationExit: the disk does not give back what it gave when it was verified; another attempt may have it.
        """
        try:
            self._saving.track(state, name)
        except OSError as error:
            if error.errno not in STUTTERS:
                raise
            report(f"cannot read the checkpoint to go on from ({error}); leaving it to the next attempt")
            self._go()

    def steps(self, total: int) -> Iterator[int]:
        """Yield the steps that are left of ``total``; between two of them the trial may save or leave."""
        self.begin(total)
        for step in range(self.next_step, total):
            self.step = step
            yield step
            self.finish_step(step)
        self.finish_training()

    def log(self, metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:  # noqa: ANN401 - a float, a tensor, an array of one
        """Log metrics at ``step``, by default the current one; costs one write to a local file.

        What an earlier attempt logged at that step or beyond is not logged again.

        Args:
            metrics: values by name, for names that are no Python words.
            step: the step they belong to.
            more: values by name.
        """
        self._stop.listen_in()
        if self._owner.held_lately():
            self._metrics.log({**(metrics or {}), **more}, self.step if step is None else int(step))
        self._start_sending()

    def begin(self, total: int | None = None) -> None:
        """Begin training: call it once after the last ``track`` in a loop without ``steps``.

        Raises:
            MigrationExit: the attempt was asked to leave before it trained at all.
            StateMismatchError: the script tracks other states than the checkpoint holds.
        """
        self._total = total
        self._trained = False
        self._stop.listen_in()
        follow_share(self._threads.most)
        self._leave_if_asked()
        self._saving.check_complete()
        if total is not None and self._owner.held():
            self._metrics.steps_total(total, self.next_step)
        self._start_sending()

    def finish_step(self, step: int) -> None:
        """Call it after each step in a loop without ``steps``: saves if it is time to.

        Raises:
            MigrationExit: the attempt was asked to leave, and has saved.
        """
        self.note_step(step)
        self.save_or_leave()

    def note_step(self, step: int) -> None:
        """Note that ``step`` is done, where the framework can only save later: then call ``save_or_leave``."""
        self._stop.listen_in()
        self.next_step = step + 1
        # Whoever opens the trial's run may have to import MLflow first, which costs the CPU of many steps.
        if not self._sender or self._sender.run_id:
            self._threads.step_done()

    def save_or_leave(self) -> None:
        """Save if it is time to; the states must be as they are before ``next_step``.

        Raises:
            MigrationExit: the attempt was asked to leave, and has saved.
        """
        if self._saving.due() and not self.stopping:
            self._save()
            follow_share(self._threads.most)
        self._leave_if_asked()

    def finish_training(self) -> None:
        """Call it after the last step in a loop without ``steps``: saves what came out.

        Raises:
            MigrationExit: the attempt was asked to leave, and the training ended before its last step.
        """
        if self._cut_short():
            self.leave()
        self._trained = True
        if self._owner.held():
            self._metrics.log_cpu(self.next_step - 1)
        self._save()
        self._exit_if_replaced()

    def leave(self) -> None:
        """Save and end this attempt; its states must be as they are before ``next_step``.

        Raises:
            MigrationExit: always.
        """
        self._save()
        self._go()

    def leave_if_saved(self) -> None:
        """Call it inside a long step: leaves if asked to, unless more than this step would have to be trained again.

        Raises:
            MigrationExit: the attempt was asked to leave, and the newest checkpoint holds all but this step.
        """
        if self._owner.lost or self.saved:
            self._leave_if_asked()

    def _leave_if_asked(self) -> None:
        self._exit_if_replaced()
        # A move would only carry a finished training elsewhere.
        if self._stop.asked and not self._trained and (self._total is None or self.next_step < self._total):
            self.leave()

    def _cut_short(self) -> bool:
        """Return whether the script was asked to leave and is known to have steps left."""
        return self._stop.heard and self._total is not None and self.next_step < self._total

    def _exit_if_replaced(self) -> None:
        if self._owner.lost:
            report(f"a newer attempt owns {self.settings.trial_id}; this one writes nothing more and leaves")
            self._go()

    def _go(self) -> NoReturn:
        if self._sender:
            leave_beside(self._sender)
        raise MigrationExit

    def _save(self) -> None:
        if not self._settled:
            self._settle()
        self._saving.save(self.next_step, self._journal, self._metrics)

    def _start_sending(self) -> None:
        # Not earlier: MLflow's import would compete with the imports of the script.
        if self._sender and not self._sender.ident:
            self._sender.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if self._interrupted(error):
                self._go_on_elsewhere(error)
            else:
                succeeded = error is None or (isinstance(error, SystemExit) and error.code in {None, 0})
                if self._is_newest():
                    try:
                        write_ending(self.settings.folder, Ending.now("FINISHED" if succeeded else "FAILED"))
                    except OSError as full:  # a training that is through must not fail for that
                        report(f"cannot keep how the trial ended ({full}); MLflow shows it as running")
                    self._flush(self.settings.flush_s)
                elif succeeded:
                    self._exit_if_replaced()
        finally:
            self._journal.close()
            if self.settings.by_hand:  # under a sweep a late SIGTERM must not undo how this ended
                self._stop.let_go()

    def _is_newest(self) -> bool:
        """Return whether no other attempt has replaced this one, also where the owner's file is seen late."""
        self._owner.lost = self._owner.lost or not self._journal.ours()
        return self._owner.held()

    def _interrupted(self, error: BaseException | None) -> bool:
        """Return whether the next attempt goes on with the training.

        After a stop request it does whatever ended this one, as long as steps are left: frameworks and scripts with a
        handler of their own end by an exit code of 0, by a return, or by an error in what the signal tore down.
        """
        code = error.code if isinstance(error, SystemExit) else None
        if code == EXIT_MIGRATE or (self._stop.heard and code == _ENDED_BY_SIGTERM):
            return True
        # Where nobody told how many steps there are, only a script that runs to its end has surely made them all.
        steps_left = self._cut_short() or (self._stop.heard and self._total is None and error is not None)
        return steps_left and not self._trained

    def _go_on_elsewhere(self, error: BaseException | None) -> None:
        if not self._owner.lost:
            self._flush(LEAVING_FLUSH_S)
        if isinstance(error, MigrationExit):
            return
        if isinstance(error, Exception):
            report("".join(traceback.format_exception(error)).rstrip())
        report("the script ended before its training did; the next attempt goes on from the last checkpoint")
        self._go()

    def _flush(self, within_s: float) -> None:
        self._start_sending()
        if self._sender and not self._sender.finish(within_s):
            report(f"MLflow has not taken everything; the rest is in {self.settings.folder}")
