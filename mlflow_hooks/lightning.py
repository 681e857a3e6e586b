"""Lightning: one callback makes ``Trainer.fit`` a trial that can be moved. A step is an epoch.

::

    with trial() as t:
        seed_everything(1, workers=True)
        moving = TrialCallback(t)
        trainer = Trainer(max_epochs=40, callbacks=[moving, ...])
        trainer.fit(model, train_data, valid_data, ckpt_path=moving.ckpt_path)

Scripts that use the package ``pytorch_lightning`` import it before this module.
"""

import importlib
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.host_copies import HostCopies, TorchContent
from mlflow_hooks.pytorch import Parts, TorchState
from mlflow_hooks.session import TrialSession

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

_FILE = "trainer.ckpt"
_BESIDE = "beside.json"
# The two packages are the same code, but neither takes the other's callbacks.
_PACKAGE = "pytorch_lightning" if "pytorch_lightning" in sys.modules else "lightning.pytorch"
_Callback: Any = importlib.import_module(_PACKAGE).Callback


class LightningState:
    """All that a trainer keeps, its loops and other callbacks among it, and the random states.

    Attributes:
        trainer: whose state ``save`` writes.
        path: what an earlier attempt saved, if there is anything.
        saving: whether the trainer writes its checkpoint for us now.
        parts: the model and its optimizers, once they are there.
        beside: what an earlier attempt saved beside Lightning's own: the folders of other checkpoints, and what of
            ``parts`` changed.
    """

    def __init__(self) -> None:
        self.trainer: Trainer | None = None
        self.path: Path | None = None
        self.saving = False
        self.parts: Parts | None = None
        self.beside: dict[str, Any] = {}
        self._random = TorchState(())
        self._copies = HostCopies()

    def save(self, folder: Path) -> None:
        """Write the trainer's own checkpoint into ``folder``."""
        if self.trainer is not None:
            self._have_saved(self.trainer, folder / _FILE)
            _write_beside(self._beside(self.trainer), folder)
        self._random.save(folder)

    def content_at_step(self) -> TorchContent | None:
        """Return the trainer's own checkpoint; None where the trainer's strategy writes it in a way of its own."""
        trainer, strategies = self.trainer, importlib.import_module(f"{_PACKAGE}.strategies").Strategy
        if trainer is None or type(trainer.strategy).save_checkpoint is not strategies.save_checkpoint:
            return None
        writer = trainer.strategy.checkpoint_io
        caught = _Caught()
        trainer.strategy.checkpoint_io = caught
        try:
            self._have_saved(trainer, _FILE)
        finally:
            trainer.strategy.checkpoint_io = writer

        def write(held: Any, folder: Path) -> None:  # noqa: ANN401 - whatever the trainer keeps
            checkpoint, beside, random = held
            writer.save_checkpoint(checkpoint, folder / _FILE)
            _write_beside(beside, folder)
            self._random.write(random, folder)

        return TorchContent((caught.checkpoint, self._beside(trainer), self._random.held()), write, self._copies)

    def _beside(self, trainer: "Trainer") -> dict[str, Any]:
        """Return what Lightning does not save or does not read in time.

        Raises:
            StateMismatchError: an optimizer has parameters that are not of the model.
        """
        folders = {it.state_key: str(it.dirpath) for it in trainer.checkpoint_callbacks if getattr(it, "dirpath", None)}
        return {"folders": folders, **(self.parts.changes() if self.parts else {})}

    def _have_saved(self, trainer: "Trainer", path: str | Path) -> None:
        self.saving = True
        try:
            trainer.save_checkpoint(path)
        finally:
            self.saving = False

    def load(self, folder: Path) -> None:
        """Note where the trainer's checkpoint is: the trainer takes it as ``ckpt_path``."""
        self.path = folder / _FILE
        if (folder / _BESIDE).exists():  # not in a checkpoint of version 0.2
            self.beside = json.loads((folder / _BESIDE).read_text())

    def restore_random(self) -> None:
        """Put back the random states, which the trainer's checkpoint does not hold."""
        if self.path:
            self._random.load(self.path.parent)


def _write_beside(beside: dict[str, Any], folder: Path) -> None:
    (folder / _BESIDE).write_text(json.dumps(beside))


class _Caught:
    """Stands where a trainer's checkpoint is written, and keeps it instead."""

    checkpoint: Any = None

    def save_checkpoint(self, checkpoint: Any, _path: object, storage_options: object = None) -> None:  # noqa: ANN401, ARG002 - as Lightning calls it
        """Keep it."""
        self.checkpoint = checkpoint


class TrialCallback(_Callback):  # type: ignore[misc]  # which of two packages it comes from is known when it runs
    """Tracks, restores, logs and saves a ``fit``.

    Put it first in the list, so that it saves before others begin an epoch (those that unfreeze layers, say).
    It logs what the model logs (``trainer.callback_metrics``) once an epoch. On SIGTERM it leaves after the current
    batch if the newest checkpoint was saved at the start of this epoch, as it is where epochs are long; else it leaves
    after the epoch. The next attempt trains an epoch that was broken off again from its start, on the same batches.

    Args:
        trial: the trial, inside its ``with`` block.
    """

    def __init__(self, trial: TrialSession) -> None:
        super().__init__()
        self._trial = trial
        self._state = LightningState()
        self._sigterm: Any = None
        self._logged: dict[str, Any] = {}
        trial.track(self._state, "lightning")

    @property
    def ckpt_path(self) -> Path | None:
        """What earlier attempts saved: pass it to ``fit`` as ``ckpt_path``."""
        return self._state.path

    def setup(self, trainer: "Trainer", *_args: object, **_stage: object) -> None:
        """Get to know the trainer, and who has SIGTERM before the trainer takes it."""
        self._state.trainer = trainer
        self._sigterm = signal.getsignal(signal.SIGTERM)
        self._keep_folders(trainer)

    def on_fit_start(self, trainer: "Trainer", *_args: object) -> None:
        """Put back what must be there before the trainer restores optimizers and opens its data loaders."""
        self._state.parts = Parts([trainer.lightning_module, *trainer.optimizers])
        self._state.parts.change(self._state.beside)
        self._state.restore_random()

    def on_train_start(self, trainer: "Trainer", *_args: object) -> None:
        """Begin.

        Raises:
            SecondTrialError: the trial has trained all of its epochs already.
            StateMismatchError: ``fit`` was not told to go on where the checkpoint ends.
        """
        # Lightning's own handler would end the fit at the next batch, and lose what is not saved.
        signal.signal(signal.SIGTERM, self._sigterm)
        by_epochs = trainer.max_steps == -1 and (trainer.max_epochs or 0) > 0
        self._trial.begin(trainer.max_epochs if by_epochs else None)
        if trainer.current_epoch != self._trial.next_step:
            message = (
                f"fit begins with epoch {trainer.current_epoch}, not {self._trial.next_step}:"
                " pass ckpt_path=callback.ckpt_path"
            )
            raise StateMismatchError(message)

    def on_train_epoch_start(self, trainer: "Trainer", *_args: object) -> None:
        """Finish the epoch before: only now have its schedulers and all its metrics come to their end."""
        self._finish_epoch(trainer)
        self._trial.step = trainer.current_epoch
        # Our checkpoints begin with a whole epoch. Under max_steps, Lightning takes every resumed epoch for one that
        # was broken off, and leaves out the step of plateau schedulers at its end.
        trainer.fit_loop._restarting = False  # noqa: SLF001 - the public setter makes it True again under max_steps

    def on_train_batch_end(self, *_args: object) -> None:
        """Leave in mid-epoch if asked to, where that loses nothing else."""
        self._trial.leave_if_saved()

    on_validation_batch_end = on_train_batch_end

    def on_train_end(self, trainer: "Trainer", *_args: object) -> None:
        """Finish the last epoch, and save what came out."""
        self._finish_epoch(trainer)
        self._trial.finish_training()

    def on_save_checkpoint(self, _trainer: "Trainer", _module: object, checkpoint: dict[str, Any]) -> None:
        """Have our checkpoints begin with a whole epoch."""
        if self._state.saving:
            _begin_epoch_again(checkpoint["loops"]["fit_loop"])

    def _keep_folders(self, trainer: "Trainer") -> None:
        """Have each ``ModelCheckpoint`` without a folder of its own go on in that of the attempt before.

        It takes that of the trainer's logger, which is another one in each attempt, and then forgets its best score.
        """
        folders: dict[str, str] = self._state.beside.get("folders", {})
        for keeper in trainer.checkpoint_callbacks:
            folder = folders.get(keeper.state_key)
            if folder and getattr(keeper, "dirpath", folder) is None:
                if "://" in folder or Path(folder).is_dir():
                    keeper.dirpath = folder
                else:
                    self._trial.tell(
                        f"{type(keeper).__name__} begins again, as its folder {folder} did not come along: pass it "
                        "dirpath=, with a folder that a move does not lose"
                    )

    def _finish_epoch(self, trainer: "Trainer") -> None:
        epoch = trainer.current_epoch - 1
        if epoch == self._trial.next_step:
            # Metrics that this epoch did not log again are still the same objects.
            metrics = trainer.callback_metrics
            self._trial.log(
                {key: value for key, value in metrics.items() if value is not self._logged.get(key)}, step=epoch
            )
            self._logged = dict(metrics)
            self._trial.finish_step(epoch)


def _begin_epoch_again(fit_loop: dict[str, Any]) -> None:
    """Take back what Lightning has already counted of an epoch that is only just beginning.

    It would else take the epoch for one that was broken off, and skip its start, or all of it under ``max_steps``.
    """
    for counts in fit_loop["epoch_progress"].values():
        counts["ready"] = counts["completed"]
    batches = fit_loop["epoch_loop.batch_progress"]
    batches["current"] = dict.fromkeys(batches["current"], 0)
    batches["is_last_batch"] = False
    fit_loop["state_dict"].pop("combined_loader", None)  # where data loaders keep their place: this one is at its end
