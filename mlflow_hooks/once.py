"""An attempt trains its trial once: in one process, in one ``with trial()``, up to one last step.

A second one would go on from the first one's last checkpoint. It would train nothing, with the weights of the first,
and what it logs would count as logged already. So it hears of that before it trains.
"""

import os
from enum import Enum, auto
from pathlib import Path
from typing import Final, NoReturn

from mlflow_hooks.errors import SecondTrialError
from mlflow_hooks.holder import Holder
from mlflow_hooks.interruption import OWNER, MigrationExit, PeersLostExit
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import report

_ADVICE: Final = (
    "Train all folds, seeds or parts in one `with trial()`: see 'Cross-validation' in "
    "docs/how-to/instrument-a-training-script.md"
)
_newest: dict[Path, "Block"] = {}


class _Stage(Enum):
    """Where a block stands."""

    MADE = auto()
    ENTERED = auto()
    FAILED = auto()
    DONE = auto()


class Block:
    """One ``with trial()`` of this process, or of the one that it was forked from.

    Args:
        settings: of the attempt.

    Raises:
        SecondTrialError: the attempt has its one block already, here or in another process.
        MigrationExit: the block before was asked to leave, and so is this one.
        PeersLostExit: the block before has lost other workers.
    """

    def __init__(self, settings: AttemptSettings) -> None:
        self._pid = os.getpid()
        self._trial = settings.trial_id
        self._owner = settings.folder / OWNER
        self._attempt = settings.attempt
        self._stage = _Stage.MADE
        self._used = False
        self._left: type[MigrationExit | PeersLostExit] | None = None
        self._error = ""
        self._most: int | None = None
        self._begun = self._through = self._told = False
        self._holder: Holder | None = None
        if (before := _newest.get(settings.folder)) is not None:
            before._make_way(settings)  # noqa: SLF001 - one of its own kind
        if settings.launched and settings.rank == 0:
            self._holder = Holder(settings.folder, settings.attempt)
            if self._holder.other is not None:
                self._refuse(
                    f"process {self._holder.other} has the trial {self._trial} already, in the same attempt as this "
                    f"process {self._pid}: call trial() in one of them, which logs what the others return. {_ADVICE}"
                )
        _newest[settings.folder] = self

    @property
    def here(self) -> bool:
        """Whether this process made it; a forked child only inherits it."""
        return os.getpid() == self._pid

    def entered(self) -> None:
        """Note that the ``with`` block begins."""
        self._stage = _Stage.ENTERED

    def use(self) -> None:
        """Note that something was trained or logged in it.

        Raises:
            SecondTrialError: this is a forked child, whose trial is its parent's.
        """
        self.check_here()
        self._used = True

    def check_here(self) -> None:
        """Make sure that this is no forked child.

        Raises:
            SecondTrialError: it is.
        """
        if not self.here:
            message = (
                f"process {os.getpid()} was forked from {self._pid}, which has the trial {self._trial}: "
                "track, train and log there, and have the child return its results"
            )
            raise SecondTrialError(message)

    def train(self, total: int | None, step: int) -> None:
        """Note that a training of ``total`` steps begins at ``step``.

        Several may follow each other if each goes further than those before it, such as a warm-up of 5 epochs and a
        training up to epoch 40.

        Raises:
            SecondTrialError: one that went as far is through: this one would train nothing.
        """
        self.check_here()
        if self.comes_second:
            self._refuse(
                f"another process of this attempt has trained {self._trial} to its end, so this one would train "
                f"nothing. {_ADVICE}"
            )
        further = total is not None and (self._most is None or total > self._most)
        if self._begun and not further:
            if total is not None and (self._through or step >= total):
                self._refuse(
                    f"{self._trial} has been trained to its end already, up to step {step}: a training of {total} "
                    f"steps would train nothing. {_ADVICE}"
                )
            if not self._told:
                report(f"{self._trial} begins to train again: its steps go on at step {step}")
            self._told = True
        self._begun, self._through = True, False
        if further:
            self._most = total

    def trained(self) -> None:
        """Note that the training is through."""
        self.use()
        self._through = True

    @property
    def comes_second(self) -> bool:
        """Whether another process of this attempt has trained the trial before."""
        return self._holder is not None and self._holder.trained

    def check_logged_once(self, known: list[str], step: int) -> None:
        """Make sure that this block repeats no points: ``known`` are those that were logged before.

        Raises:
            SecondTrialError: it does.
        """
        if known:
            self._refuse(
                f"another process of this attempt has logged {', '.join(sorted(known))} of {self._trial} at step "
                f"{step} or beyond. {_ADVICE}"
            )

    def end(self, error: BaseException | None) -> None:
        """Note how the block ended."""
        if isinstance(error, MigrationExit | PeersLostExit):
            self._left = type(error)
        good = error is None or (isinstance(error, SystemExit) and error.code in {None, 0})
        self._stage = _Stage.DONE if good else _Stage.FAILED
        self._error = repr(error)[:200]
        self._give_back()

    def _give_back(self) -> None:
        if self._holder:
            self._holder.give_back(trained=self._used and self._stage is _Stage.DONE)

    def _make_way(self, settings: AttemptSettings) -> None:
        """Let another block of the same trial begin in this process.

        Raises:
            SecondTrialError: this one still trains, or has trained.
            MigrationExit: this one was asked to leave.
            PeersLostExit: this one has lost other workers.
        """
        if settings.attempt != self._attempt:
            if self._used and not settings.launched:
                report(f"trial() once more in this process: another attempt of {self._trial}, which goes on from it")
            return
        if not self._kept():
            return
        if self._left is not None:
            raise self._left
        if self._stage is _Stage.ENTERED or (self._stage is _Stage.MADE and self._used):
            self._refuse(
                f"the trial {self._trial} is under way in process {self._pid}, and trial() was called once more in "
                f"{'the same one' if self.here else f'its child {os.getpid()}'}. {_ADVICE}"
            )
        if self._used and self._stage is _Stage.DONE:
            self._refuse(
                f"the trial {self._trial} has ended: its `with trial()` is over, and another one in the same attempt "
                f"would train nothing. {_ADVICE}"
            )
        if self._used:
            report(
                f"trial() once more, after {self._error}: {self._trial} goes on from its newest checkpoint, and what "
                "was logged stays"
            )
        self._give_back()

    def _kept(self) -> bool:
        """Return whether the trial's folder is still that of this attempt: nobody has removed it or taken it over."""
        try:
            return self._owner.read_text() == self._attempt
        except OSError:
            return False

    def _refuse(self, message: str) -> NoReturn:
        """Raise, and tell also where the script catches whatever a fold raises."""
        report(message)
        raise SecondTrialError(message)
