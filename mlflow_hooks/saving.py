"""The tracked states of one attempt: taken back at its start, and kept in checkpoints, beside the training if large."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mlflow_hooks.checkpoints import STUTTERS, Checkpoint, Checkpoints, MadeAt, pause_after
from mlflow_hooks.drafts import CopyError, Draft, Writing
from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.interruption import Ownership
from mlflow_hooks.journal import Journal
from mlflow_hooks.metrics import Metrics
from mlflow_hooks.state_folder import disk_is_full, report
from mlflow_hooks.states import Content, CopiedState, State
from mlflow_hooks.system import memory_left

BESIDE_BYTES: Final = 32 * 2**20
"""From here on, what is left of a checkpoint is written beside the training. Less is on the disk within a tenth of a
second or two, and a training may then save after each step (benchmarks/stalls.py)."""
_PAUSES_S: Final = (0.01, 0.1)
_TOLD: Final = "told-of-plain-variables"


def _loaded(state: State, folder: Path) -> None:
    """Give ``state`` back what ``folder`` holds; a disk that stutters is asked again.

    Raises:
        OSError: it cannot be read, though it could when it was verified.
    """
    for pause in _PAUSES_S:
        try:
            state.load(folder)
        except OSError as error:
            if error.errno not in STUTTERS:
                raise
            time.sleep(pause)
        else:
            return
    state.load(folder)


class Restoring:
    """The tracked states of one attempt, as ``checkpoint``, which the attempt goes on from, holds them."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._states: dict[str, State] = {}
        self.checkpoint = checkpoint
        self._saved_step = checkpoint.step if checkpoint else 0

    @property
    def saved_step(self) -> int:
        """The step that the newest checkpoint goes on with, 0 without any."""
        return self._saved_step

    def track(self, state: State, name: str | None) -> None:
        """Track ``state`` and give it back what the checkpoint holds under its name."""
        name = name or f"state-{len(self._states)}"
        if self.checkpoint and name in self.checkpoint.states:
            _loaded(state, self.checkpoint.folder / name)
        self._states[name] = state

    @property
    def tracked(self) -> bool:
        """Whether there is anything that comes back."""
        return bool(self._states)

    def held(self) -> Iterator[Any]:
        """Yield what the tracked states hold themselves: of values that the script tracks, each."""
        for state in self._states.values():
            for held in vars(state).values() if hasattr(state, "__dict__") else ():
                yield held
                if isinstance(held, dict):
                    yield from held.values()

    def check_complete(self) -> None:
        """Make sure that all of the checkpoint was taken back.

        Raises:
            StateMismatchError: the script tracks other states than the checkpoint holds.
        """
        if self.checkpoint and set(self.checkpoint.states) != self._states.keys():
            tracked, held = sorted(self._states), sorted(self.checkpoint.states)
            message = f"{self.checkpoint.folder} holds the states {held}, but the script tracks {tracked}"
            raise StateMismatchError(message)


class Saving(Restoring):
    """The tracked states of one attempt, and the checkpoints that it makes of them.

    A large one that may be written beside the training is copied at the step (``Content.copy``), and a thread writes
    the copy. There is one such thread at most, and no periodic save is due meanwhile. A checkpoint counts as saved once
    the disk has it. So do CheckFreq (Mohan et al., FAST 2021, section 4.1) and PyTorch's ``async_save``.
    """

    def __init__(self, checkpoints: Checkpoints, owner: Ownership, every_s: float, grace_s: float) -> None:
        super().__init__(checkpoints.newest())
        self._checkpoints = checkpoints
        self._owner = owner
        self._every_s, self._grace_s = every_s, grace_s
        self._least_s: float | None = None
        checkpoints.clean()
        self._due_at = time.monotonic() + every_s
        self._warned = False
        self._failing = False
        self._writing: Writing | None = None
        self._beside = True
        self._told_of_memory = False

    def tell_of_plain_variables(self) -> None:
        """Tell once in a trial's life what comes back where only the parts of a model are tracked."""
        if not self.checkpoint or not all(getattr(state, "of_model", False) for state in self._states.values()):
            return
        try:
            (self._checkpoints.folder.parent / _TOLD).touch(exist_ok=False)
        except OSError:  # it was told before, or would be told each time
            return
        report(
            f"going on at step {self.saved_step} with {', '.join(self._states)}; plain variables of the script, such "
            "as a best value or a patience, start again from their first values: keep them by t.track_values()"
        )

    @property
    def saved_step(self) -> int:
        """The step that the newest checkpoint goes on with, 0 without any; one that is being written does not count."""
        self.settle(0.0)
        return self._saved_step

    def due(self) -> bool:
        """Return whether it is time for a periodic checkpoint, and none is being written."""
        return self.settle(0.0) and time.monotonic() >= self._due_at

    def fits(self, step: int, within_s: float) -> bool:
        """Return whether a checkpoint before ``step`` may be whole ``within_s`` seconds from now.

        What is known of it are the checkpoints of this attempt so far.
        """
        if self._least_s is None:
            return True
        writing, takes_s = self._writing, self._least_s
        if writing is not None and not self.settle(0.0):
            rest_s = max(0.0, self._least_s - (time.monotonic() - writing.began))
            takes_s = rest_s if writing.step == step else rest_s + takes_s
        return takes_s <= within_s

    def settle(self, within_s: float = math.inf) -> bool:
        """Wait for the checkpoint that is being written, if there is one; return whether there is none any more."""
        if self._writing is None:
            return True
        self._writing.join(None if math.isinf(within_s) else within_s)
        if self._writing.is_alive():
            return False
        written, self._writing = self._writing, None
        self._take_note(written)
        return True

    def leave_behind(self) -> Writing | None:
        """Return the thread that still writes a checkpoint for which nobody waits any more."""
        return None if self.settle(0.0) else self._writing

    def save(self, step: int, journal: Journal, metrics: Metrics, *, beside: bool = False) -> None:
        """Keep all states as they are before ``step``; a disk that fails is reported, not raised.

        Args:
            step: the step to go on with.
            journal: points, which outlive what the checkpoint outlives.
            metrics: it knows the CPU seconds that were used.
            beside: whether a large checkpoint may be written while the training goes on; else it is there on return.
        """
        began, kept = time.monotonic(), False
        self.settle()
        if step > self.saved_step and not self._states and not self._warned:
            report("nothing is tracked, so an interrupted training starts again at step 0")
            self._warned = True
        if step > self.saved_step and self._states and self._owner.held():
            # The points up to a checkpoint must outlive whatever the checkpoint outlives: no attempt logs them again.
            if journal.sync():
                self._try_twice(step, journal, metrics, began, beside=beside and self._beside)
                kept = self._writing is None and self._saved_step == step
            else:
                self._say(f"no checkpoint at step {step}: the metrics before it are not written yet")
        if self._writing is None:
            self._note_time(time.monotonic() - began, kept=kept)

    def _note_time(self, took_s: float, *, kept: bool) -> None:
        if kept:
            self._least_s = min(took_s, math.inf if self._least_s is None else self._least_s)
        self._due_at = time.monotonic() + pause_after(took_s, self._every_s, self._grace_s)

    def _try_twice(self, step: int, journal: Journal, metrics: Metrics, began: float, *, beside: bool) -> None:
        """Save; PyTorch and others tell of a disk by errors of their own, so only a mistake made twice is one."""

        def allowed() -> bool:
            return self._owner.held() and journal.ours()

        for first in (True, False):
            try:
                contents = self._contents() if beside and first else {}
                copies = self._copies(contents)
                made_at = MadeAt(step, metrics.cpu_seconds(), journal.repeated_beyond())
                draft = Draft.of(self._states, contents, self._checkpoints, made_at, copies=copies)
                if beside and first and draft.nbytes >= BESIDE_BYTES:
                    self._writing = Writing(draft, allowed, began)
                    self._writing.start()
                elif draft.keep(allowed):
                    self._note_kept(step)
            except CopyError as error:
                self._beside = False
                report(f"no copy of a checkpoint can be made ({error}), so the training waits for the disk instead")
            except Exception as error:
                of_the_disk = self._note_failure(step, error)
                if not (first or of_the_disk):
                    raise
                if of_the_disk:
                    return
            else:
                return

    def _contents(self) -> dict[str, Content]:
        found = {
            name: state.content_at_step() for name, state in self._states.items() if isinstance(state, CopiedState)
        }
        return {name: content for name, content in found.items() if content is not None}

    def _copies(self, contents: dict[str, Content]) -> bool:
        """Return whether to copy ``contents``: they are large, and the memory holds as much once more beyond the copy.

        So two trials that look at the same moment both find room.
        """
        nbytes = sum(content.nbytes for content in contents.values())
        if nbytes < BESIDE_BYTES:
            return False
        left = memory_left()
        short = left is not None and left - sum(content.to_copy for content in contents.values()) < nbytes
        for content in contents.values() if short else ():
            content.give_back()
        if short and not self._told_of_memory:
            report(
                f"{left or 0:,} bytes of memory are left, too few to copy a checkpoint of {nbytes:,} bytes, so the "
                "training waits for the disk instead"
            )
            self._told_of_memory = True
        return not short

    def _take_note(self, written: Writing) -> None:
        """Note how the thread ended; a mistake of another kind comes again in the next save, which is in step."""
        if written.kept:
            self._note_kept(written.step)
        if written.error is None or self._note_failure(written.step, written.error):
            self._note_time(written.took_s, kept=written.kept)
        else:
            report(f"no checkpoint at step {written.step} ({written.error}); the training waits for the next one")
            self._beside, self._due_at = False, -math.inf

    def _note_kept(self, step: int) -> None:
        self._saved_step = step
        self._failing = False

    def _note_failure(self, step: int, error: Exception) -> bool:
        """Remove what was begun, and return whether the disk failed, which is told."""
        of_the_disk = isinstance(error, OSError) or disk_is_full(self._checkpoints.folder)
        self._checkpoints.remove_unfinished()
        if of_the_disk:
            self._say(f"no checkpoint at step {step} ({error}); the one before stays")
        return of_the_disk

    def _say(self, what: str) -> None:
        if not self._failing:
            report(what)
        self._failing = True
