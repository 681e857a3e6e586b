"""The trial itself: where it goes on, what it logs, when it saves, and when it leaves."""

import math
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn, Self

from mlflow_hooks.checkpoints import STUTTERS, Checkpoints
from mlflow_hooks.contract import EXIT_MIGRATE, EXIT_PEERS_LOST
from mlflow_hooks.cpu_use import CpuMeter, WaitMeter
from mlflow_hooks.gang import Gang
from mlflow_hooks.interruption import MigrationExit, Ownership, PeersLostExit, StopRequest, leave_message
from mlflow_hooks.leave_file import LeaveFile
from mlflow_hooks.once import Block
from mlflow_hooks.presence import Announcement
from mlflow_hooks.record import Record
from mlflow_hooks.saving import Restoring
from mlflow_hooks.sender import short_timeouts
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import report, tell
from mlflow_hooks.states import State
from mlflow_hooks.store_use import ask_patiently, open_elsewhere
from mlflow_hooks.threads import ThreadSearch, follow_share, prepare_threads
from mlflow_hooks.values import ChangedInPlace, Values

LEAVING_FLUSH_S: Final = 2.0
"""How long an attempt that leaves waits for MLflow; the next attempt sends the rest."""
_LEAVING_MARGIN_S: Final = LEAVING_FLUSH_S + 2.0
"""What is left of the grace when an attempt stops waiting for the store, to end by itself and not by SIGKILL."""
_LAST_UPLOAD_S: Final = 600.0
"""A training that has ended waits so long for the store to take what came out."""
_ENDED_BY_SIGTERM: Final = 128 + signal.SIGTERM
"""The exit code of a shell whose command SIGTERM ended; Lightning ends with it too."""


class TrialSession:
    """One attempt of a trial. Made by ``mlflow_hooks.trial()``; alive from the start of its ``with`` block.

    Attributes:
        settings: what the attempt was told: ids, folder, sweep.
        params: hyperparameters.
        objective: name of the objective metric, where known.
        gang: this worker among those that train the trial together; mostly it is the only one.
        next_step: the first step (0-based) that is not done.
        step: the step that ``log`` speaks of by itself.
    """

    def __init__(self, settings: AttemptSettings, checkpoint_every_s: float) -> None:
        self.settings = settings
        self.params = settings.params
        self.objective = settings.objective
        self._total: int | None = None
        self._begun = self._trained = False
        self._left_in: int | None = None  # the step that ``steps`` has given out
        self._block = Block(settings)
        self._stop = StopRequest()
        self._stop.listen()
        self._leave_file = LeaveFile(settings, self._stop)
        prepare_threads()
        short_timeouts()
        self._owner = Ownership(settings.folder, settings.attempt)
        self._record: Record | None = None
        mirror, meeting = open_elsewhere(settings)
        if settings.rank == 0:
            self.gang = Gang(settings, meeting, self._wants_to_leave, lambda: 0.0, lambda: 0.0)
            if mirror:
                self._ask_store(mirror.take_over)
            self._record = Record(settings, self._owner, checkpoint_every_s, mirror)
            self._states: Restoring = self._record.saving
            self.gang.lead(self._states.saved_step)
        else:
            self.gang = Gang(settings, meeting, self._wants_to_leave, CpuMeter().seconds, WaitMeter().seconds)
            step = self.gang.follow()
            if step and mirror:
                self._ask_store(partial(mirror.bring_checkpoint, step))
            self._owner.held()  # rank 0 has claimed the folder for all: an attempt that comes after that replaces them
            with self._leaving_where_a_disk_stutters():
                self._states = Restoring(Checkpoints(settings.folder / "checkpoints").at(step) if step else None)
        self.step = self.next_step = self._states.saved_step
        self._values_tracked = 0
        self._threads = ThreadSearch(settings.folder)
        self._said = Announcement(settings.folder, settings.attempt, settings.rank)

    @property
    def stopping(self) -> bool:
        """Whether this attempt was asked to leave, or a newer one has replaced it.

        Several workers learn it together: it is the same on all of them, and changes when a step is finished.
        """
        return self.gang.leaving if self.gang.workers > 1 else self._wants_to_leave()

    @property
    def saved(self) -> bool:
        """Whether the newest checkpoint holds every step that is done, so that leaving loses only the one under way."""
        return self._states.saved_step == self.next_step

    @property
    def saving_due(self) -> bool:
        """Whether ``save_or_leave`` would save now, for frameworks that must be told before they can."""
        return self._save_due() or self.stopping

    @property
    def run_id(self) -> str | None:
        """The trial's MLflow run; None until it is open, which happens in the background."""
        return self._record.run_id if self._record else None

    def track(self, state: State, name: str | None = None) -> None:
        """Keep ``state`` in each checkpoint, and restore it now if there is a whole checkpoint.

        Args:
            state: what must come back.
            name: its folder in a checkpoint; by default its place in the order of calls.

        Raises:
            MigrationExit: the disk does not give back what it gave when it was verified; another attempt may have it.
            SecondTrialError: this is a forked child; so do all methods that train, save or log.
        """
        self._block.check_here()
        with self._leaving_where_a_disk_stutters():
            self._states.track(state, name)

    def track_values(self, **first: Any) -> Values:  # noqa: ANN401 - whatever the script needs back
        """Keep plain values in each checkpoint: ``v = t.track_values(best=1e9)``, then ``v.best = ...``.

        Args:
            first: the values by name, as they are before the first step.

        Returns:
            An object with the values as attributes: those of the checkpoint, if there is a whole one.

        Raises:
            TypeError: a value is no number, text, bool, None, or list or dict of these.
            MigrationExit: as ``track`` does.
            SecondTrialError: as ``track`` does.
        """
        values = Values(first)
        self._values_tracked += 1
        self.track(values, "values" if self._values_tracked == 1 else f"values-{self._values_tracked}")
        return values

    def steps(self, total: int) -> Iterator[int]:
        """Yield the steps that are left of ``total``; between two of them the trial may save or leave.

        A loop that ``break`` or ``return`` ends is through: the step that it was in counts as done.
        """
        self.begin(total)
        changed = ChangedInPlace()
        for step in range(self.next_step, total):
            self.step = self._left_in = step
            self._tell_of_changes(changed, sys._getframe(1))  # noqa: SLF001 - the script's loop
            yield step
            self._left_in = None
            self.finish_step(step)
        self.finish_training()

    def log(self, metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:  # noqa: ANN401 - a float, a tensor, an array of one
        """Log metrics at ``step``, by default the current one; costs one write to a local file.

        What an earlier attempt logged at that step or beyond is not logged again. Of several workers rank 0 logs.

        Args:
            metrics: values by name, for names that are no Python words.
            step: the step they belong to.
            more: values by name.
        """
        self._block.use()
        self._stop.listen_in()
        if self._record:
            values, at = {**(metrics or {}), **more}, self.step if step is None else int(step)
            if self._block.comes_second:
                self._block.check_logged_once(self._record.logged_before(values, at), at)
            self._record.log(values, at)
            self._record.start_sending()

    def begin(self, total: int | None = None) -> None:
        """Begin training: call it once after the last ``track`` in a loop without ``steps``.

        Raises:
            GangError: there are several workers, and the script did not join them.
            MigrationExit: the attempt was asked to leave before it trained at all, or a worker did not come.
            SecondTrialError: a training that went as far is through, so this one would train nothing.
            StateMismatchError: the script tracks other states than the checkpoint holds.
        """
        self._block.train(total, self.next_step)
        self._total = total
        self._begun, self._trained = True, False
        self._left_in = None
        self._stop.listen_in()
        follow_share(self._threads.most)
        self.gang.begin()
        self._leave_if_asked()
        self._states.check_complete()
        if self._record:
            self._record.saving.tell_of_plain_variables()
            self._record.begin(total, self.next_step)
            self._record.start_sending()

    def finish_step(self, step: int) -> None:
        """Call it after each step in a loop without ``steps``: saves if it is time to.

        Raises:
            MigrationExit: the attempt was asked to leave, and has saved.
        """
        self.note_step(step)
        self.save_or_leave()

    def note_step(self, step: int) -> None:
        """Note that ``step`` is done, where the framework can only save later: then call ``save_or_leave``."""
        self._block.use()
        self._stop.listen_in()
        self.next_step = step + 1
        if self.gang.workers_max == 1 and self._record and not self._record.opening_run:
            self._threads.step_done()

    def save_or_leave(self) -> None:
        """Save if it is time to; the states must be as they are before ``next_step``.

        Raises:
            MigrationExit: the attempt was asked to leave, and has saved.
        """
        self._block.check_here()
        if self.gang.workers > 1:
            self._owner.held_lately()
            self.gang.settle()
            if self._record:
                self._record.others_used(self.gang.others_cpu_s, self.gang.others_wait_s)
        if self._save_due() and not self.stopping:
            self._save(beside=True)
            follow_share(self._threads.most)
        self._leave_if_asked()

    def finish_training(self) -> None:
        """Call it after the last step in a loop without ``steps``: saves what came out.

        Raises:
            MigrationExit: the attempt was asked to leave, and the training ended before its last step.
        """
        self._block.trained()
        if self._cut_short():
            self.leave()
        self._trained = True
        if self._record:
            self._record.finish(self.next_step)
        self._exit_if_replaced()

    def leave(self) -> None:
        """Save and end this attempt; its states must be as they are before ``next_step``.

        A checkpoint that is being written is waited for.

        It leaves as it is where a save surely takes longer than there is: killed in the middle, it would have failed.

        Raises:
            MigrationExit: always.
        """
        self._block.check_here()
        left_s = self._stop.seconds_left(self.settings.grace_s, math.inf)
        if self._record and not self.saved and not self._record.saving.fits(self.next_step, left_s):
            self._record.saving.settle(max(0.0, left_s - _LEAVING_MARGIN_S))
            step = self._states.saved_step
            report(
                f"a save takes longer than the {left_s:.0f} s that are left; the next attempt goes on at step {step}"
            )
            self._go(f"left at step {step}, that of its last checkpoint: a save takes longer than there was")
        self._save()
        self._go()

    def tell(self, text: str) -> None:
        """Tell the person who runs the sweep, once in the trial's life; in the sweep's own output on one machine."""
        if self._record:
            tell(self.settings.folder, text)

    def use_threads(self, count: int) -> None:
        """Compute with ``count`` threads, however many cores there are, unless the user has chosen another number."""
        self._threads.settle_on(count)

    def leave_if_saved(self) -> None:
        """Call it inside a long step: leaves if asked to, unless more than this step would have to be trained again.

        Raises:
            MigrationExit: the attempt was asked to leave, and the newest checkpoint holds all but this step.
        """
        if self._owner.lost or self.saved:
            self._leave_if_asked()

    @contextmanager
    def _leaving_where_a_disk_stutters(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in STUTTERS:
                raise
            report(f"cannot read the checkpoint to go on from ({error}); leaving it to the next attempt")
            self.gang.say_leaving()
            self._go(f"left, since the checkpoint to go on from could not be read: {error}")

    def _ask_store(self, ask: Callable[[], None]) -> None:
        """Ask the store of checkpoints until it answers: before that nobody knows where this attempt goes on.

        Raises:
            MigrationExit: it does not answer for minutes, or the attempt was asked to leave.
        """
        if (error := ask_patiently(ask, lambda: self._stop.asked)) is not None:
            self.gang.say_leaving()
            self._go(f"left, since the store of checkpoints does not answer: {error}")

    def _wants_to_leave(self) -> bool:
        return self._stop.asked or self._owner.lost

    def _tell_of_changes(self, changed: ChangedInPlace, loop: FrameType) -> None:
        """Tell, before anything moves, of a list of the script that a move would lose."""
        name = None
        if self._states.tracked:
            with suppress(Exception):  # objects of the script may answer as they like, and this is no more than a hint
                name = changed.look(loop, self._states.held())
        if name:
            own = name.rpartition(".")[2]
            self.tell(
                f"{name} changes in place from step to step, and does not come back: after a move it is again as the "
                f"script makes it. Keep it by v = t.track_values({own}=...) and use v.{own}, or make it in each step; "
                "where it does not matter, as for a list that each step fills again, nothing is to do"
            )

    def _leave_if_asked(self) -> None:
        if self.gang.workers == 1:
            self._exit_if_replaced()
        # A move would only carry a finished training elsewhere.
        if self.stopping and not self._trained and (self._total is None or self.next_step < self._total):
            self.leave()

    def _cut_short(self) -> bool:
        """Return whether the script was asked to leave and is known to have steps left."""
        return self._stop.heard and self._total is not None and self.next_step < self._total

    def _exit_if_replaced(self) -> None:
        if self._owner.lost:
            report(f"a newer attempt owns {self.settings.trial_id}; this one writes nothing more and leaves")
            self._go("left to a newer attempt, which goes on from its checkpoint")

    def _go(self, why: str = "") -> NoReturn:
        if not self.settings.by_hand:
            leave_message(why or f"left at step {self.next_step}, so that the next attempt goes on from there")
        if self._record:
            self._record.leave_beside(EXIT_MIGRATE)
        raise MigrationExit

    def _save_due(self) -> bool:
        return self._record is not None and self._record.saving.due()

    def _save(self, *, beside: bool = False) -> None:
        if self._record:
            self._record.save(self.next_step, beside=beside)

    def __enter__(self) -> Self:
        self._block.entered()
        self._said.training()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if not self._block.here:  # a forked child that ends: the trial is its parent's
            return
        how = error
        try:
            self._close(error)
        except BaseException as raised:
            how = raised
            raise
        finally:
            self._block.end(how)
            if isinstance(how, MigrationExit):
                self._leave_file.end_launcher()

    def _close(self, error: BaseException | None) -> None:
        self._leave_file.close()
        try:
            if self._record:  # what is being written counts for the next attempt, however this one ended
                self._record.saving.settle(self._stop.seconds_left(self.settings.grace_s - _LEAVING_MARGIN_S, math.inf))
            lost_another = self.gang.lost_another(error)
            self.gang.close(together=error is None or isinstance(error, MigrationExit))
            if lost_another:
                self._end_without_others(error)
            elif self._interrupted(error):
                self._go_on_elsewhere(error)
            else:
                self._end(error)
        finally:
            if self._record:
                self._record.close()
            if self.settings.by_hand:  # under a sweep a late SIGTERM must not undo how this ended
                self._stop.let_go()

    def _end(self, error: BaseException | None) -> None:
        """Keep how the training ended, as the newest attempt."""
        succeeded = error is None or (isinstance(error, SystemExit) and error.code in {None, 0})
        if self._record and self._record.still_ours():
            if succeeded and self._begun and not self._trained:
                # The script left its loop, and so never came to what ``steps`` does at the end.
                self.next_step = self.next_step if self._left_in is None else self._left_in + 1
                self._record.finish(self.next_step)
            self._record.end("FINISHED" if succeeded else "FAILED")
            if succeeded:
                self._said.over()
            if not self._record.settle(_LAST_UPLOAD_S) and succeeded:
                self._record.send_unkept()
            self._record.flush(self.settings.flush_s)
        elif succeeded:
            self._exit_if_replaced()
            self._said.over()

    def _end_without_others(self, error: BaseException | None) -> NoReturn:
        """End soon, so that the whole gang can start again from its checkpoint."""
        report(f"another worker has gone ({error}); the whole gang starts again from its checkpoint")
        if self._record:
            self._record.flush(LEAVING_FLUSH_S)
            self._record.leave_beside(EXIT_PEERS_LOST)
        raise PeersLostExit from error

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
            self._said.left()
        if self._record and not self._owner.lost:
            self._record.settle(self._stop.seconds_left(self.settings.grace_s - _LEAVING_MARGIN_S, _LAST_UPLOAD_S))
            self._record.flush(LEAVING_FLUSH_S)
        if isinstance(error, MigrationExit):
            return
        if isinstance(error, Exception):
            report("".join(traceback.format_exception(error)).rstrip())
        report("the script ended before its training did; the next attempt goes on from the last checkpoint")
        self._go()
