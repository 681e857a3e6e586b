"""Hugging Face: one callback makes ``Trainer.train`` a trial that can be moved. A step is an optimizer's step.

::

    with trial() as t:
        moving = TrialCallback(t)
        arguments = TrainingArguments(output_dir=moving.output_dir, report_to="none", learning_rate=t.params["lr"])
        trainer = Trainer(model, arguments, train_dataset=train_data, eval_dataset=valid_data, callbacks=[moving])
        trainer.train(resume_from_checkpoint=moving.checkpoint)
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.pytorch import module_modes, restore_modes
from mlflow_hooks.session import TrialSession
from mlflow_hooks.states import OtherCallbacks, callbacks_before

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

_FOLDER = "checkpoint"
_MODES = "modes.json"


class HuggingFaceState:
    """The checkpoint that the Trainer wrote: model, optimizer, scheduler, random states and its own counts.

    Attributes:
        source: where the Trainer writes the checkpoint of the step that is done.
        ours: whether it does so for us alone, so that we may take it away.
        path: what an earlier attempt saved, if there is anything.
        others: the callbacks beside ours.
        model: what is trained, once that is known.
    """

    def __init__(self) -> None:
        self.source = Path()
        self.ours = False
        self.path: str | None = None
        self.others = OtherCallbacks()
        self.model: Any = None
        self._modes: dict[str, dict[str, bool]] | None = None

    def save(self, folder: Path) -> None:
        """Take the Trainer's checkpoint over into ``folder``.

        Raises:
            FileNotFoundError: the Trainer has not written it.
        """
        if self.ours:
            shutil.move(self.source, folder / _FOLDER)
        else:
            shutil.copytree(self.source, folder / _FOLDER)
        self.others.write(self.others.held(), folder)
        (folder / _MODES).write_text(json.dumps(module_modes(self.model)))

    def load(self, folder: Path) -> None:
        """Note where the checkpoint is: the Trainer takes it as ``resume_from_checkpoint``."""
        self.path = str(folder / _FOLDER)
        self.others.load(folder)
        if (folder / _MODES).exists():  # not in a checkpoint of version 0.2
            self._modes = json.loads((folder / _MODES).read_text())

    def meet(self, model: Any, callbacks: list[Any]) -> None:  # noqa: ANN401 - of Transformers or of PyTorch alone
        """Get to know what trains, and give it back what the Trainer's checkpoint does not hold."""
        self.model = model
        if self._modes is not None:
            restore_modes(model, self._modes)
        self.others.meet(callbacks)


class TrialCallback(TrainerCallback):  # type: ignore[misc]  # mypy does not follow into Transformers
    """Has the Trainer save when it is time to or when the trial is asked to leave, logs, and leaves.

    What the Trainer logs goes into the trial's run, so ``report_to="none"`` is enough. ``save_only_model`` must be off.
    Put it last in the list, so that it hears of early stopping, and brings back what the callbacks before it have
    counted. The Trainer itself restores the random states and skips the batches that are done.

    Args:
        trial: the trial, inside its ``with`` block.
    """

    def __init__(self, trial: TrialSession) -> None:
        self._trial = trial
        self._state = HuggingFaceState()
        self._complete = False  # whether all that belongs to the step has happened once the Trainer saves
        self._logged: dict[str, int] = {}
        trial.track(self._state, "huggingface")

    @property
    def checkpoint(self) -> str | None:
        """What earlier attempts saved: pass it to ``train`` as ``resume_from_checkpoint``."""
        return self._state.path

    @property
    def output_dir(self) -> str:
        """A folder that the trial finds again after a move, for the Trainer's own checkpoints."""
        return str(self._trial.settings.folder / "trainer")

    def on_train_begin(
        self, _args: "TrainingArguments", state: "TrainerState", _control: "TrainerControl", **more: object
    ) -> None:
        """Begin.

        Raises:
            SecondTrialError: the trial has trained all of its steps already.
            StateMismatchError: ``train`` was not told to go on where the checkpoint ends.
        """
        self._trial.begin(state.max_steps)
        if state.global_step != self._trial.next_step:
            message = (
                f"train begins with step {state.global_step}, not {self._trial.next_step}:"
                " pass resume_from_checkpoint=callback.checkpoint"
            )
            raise StateMismatchError(message)
        self._state.meet(more["model"], callbacks_before(self, self._trial.tell))

    def on_step_begin(
        self, _args: "TrainingArguments", state: "TrainerState", _control: "TrainerControl", **_more: object
    ) -> None:
        """Note which step the metrics belong to."""
        self._trial.step = state.global_step

    def on_step_end(
        self, args: "TrainingArguments", state: "TrainerState", control: "TrainerControl", **_more: object
    ) -> None:
        """Note that the step is done, and ask for a checkpoint if it is time to."""
        self._state.source = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self._trial.note_step(state.global_step - 1)
        # The last step of an epoch waits for the end of the epoch: a checkpoint before it would skip its evaluation.
        self._complete = not float(state.epoch or 0).is_integer()
        self._ask_to_save(state, control)

    def on_epoch_end(
        self, _args: "TrainingArguments", state: "TrainerState", control: "TrainerControl", **_more: object
    ) -> None:
        """Ask for a checkpoint if it is time to."""
        self._complete = True
        self._ask_to_save(state, control)

    def on_evaluate(
        self, _args: "TrainingArguments", state: "TrainerState", control: "TrainerControl", **_more: object
    ) -> None:
        """Ask for a checkpoint of what came out if early stopping ends the training here."""
        if control.should_training_stop:
            self._ask_to_save(state, control)

    def on_save(self, *_args: object, **_more: object) -> None:
        """Take the checkpoint over, and leave if asked to."""
        if self._complete:
            self._trial.save_or_leave()

    def on_log(
        self,
        _args: "TrainingArguments",
        state: "TrainerState",
        _control: "TrainerControl",
        logs: Mapping[str, object] | None = None,
        **_more: object,
    ) -> None:
        """Log the numbers at the step that is done, each once."""
        step = max(state.global_step - 1, 0)
        new = {
            key: value
            for key, value in (logs or {}).items()
            if isinstance(value, int | float) and self._logged.get(key) != step
        }
        self._logged.update(dict.fromkeys(new, step))
        self._trial.log(new, step=step)

    def on_train_end(self, *_args: object, **_more: object) -> None:
        """Save what came out."""
        self._trial.finish_training()

    def _ask_to_save(self, state: "TrainerState", control: "TrainerControl") -> None:
        done = control.should_training_stop or state.global_step >= state.max_steps
        wanted = self._complete and (done or self._trial.saving_due) and not self._trial.saved
        self._state.ours = wanted and not control.should_save
        control.should_save = control.should_save or wanted
