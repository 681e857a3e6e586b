"""Keras 3: one callback makes ``fit`` a trial that can be moved. A step is an epoch."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow_hooks.batches import batch_indices, batches_per_epoch
from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.session import TrialSession
from mlflow_hooks.states import OtherCallbacks, callbacks_before, load_random_states, random_states, save_random_states

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FILE = "variables.npz"


class _Copies:
    """Arrays that are copies already, with the random states of their moment: what a checkpoint holds.

    Args:
        arrays: the copies.
        random: the random states.
        others: what ``OtherCallbacks.held`` returned, where there are callbacks.
    """

    to_copy = 0

    def __init__(
        self,
        arrays: "list[npt.NDArray[np.generic]]",
        random: dict[str, Any],
        others: tuple[str, list[Any]] | None = None,
    ) -> None:
        self._arrays = arrays
        self._random = random
        self._others = others
        self.nbytes = sum(array.nbytes for array in [*arrays, *(others[1] if others else ())])

    def copy(self) -> None:
        """Leave it as it is."""

    def give_back(self) -> None:
        """Keep nothing for the next copy."""

    def write(self, folder: Path) -> None:
        """Write everything into ``folder``."""
        import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it

        np.savez(folder / _FILE, allow_pickle=False, **{f"{i:05d}": array for i, array in enumerate(self._arrays)})
        save_random_states(folder, self._random)
        if self._others:
            OtherCallbacks.write(self._others, folder)


class KerasVariables:
    """All variables of a model and its optimizer, with the random states, for a loop of your own.

    Dropout and other random layers keep their seeds in variables, so they come back too. Track it inside the scope of
    a ``tf.distribute`` strategy, if there is one.

    Args:
        model: a built one.
        optimizer: what trains it.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:  # noqa: ANN401 - Keras ships no types
        self._model = model
        self._optimizer = optimizer
        if not optimizer.built:
            optimizer.build(model.trainable_variables)

    def arrays(self) -> "list[npt.NDArray[np.generic]]":
        """Return a copy of each variable that training changes."""
        return [_as_array(variable) for variable in self._variables()]

    def save(self, folder: Path) -> None:
        """Write everything into ``folder``."""
        self.content_at_step().write(folder)

    def content_at_step(self) -> _Copies:
        """Return a copy of everything."""
        return _Copies(self.arrays(), random_states())

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote."""
        import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it

        with np.load(folder / _FILE, allow_pickle=False) as saved:
            arrays = [saved[name] for name in sorted(saved.files)]
        for variable, array in zip(self._variables(), arrays, strict=True):
            variable.assign(array)
        load_random_states(folder)

    def _variables(self) -> list[Any]:
        """Return what training changes; metrics start afresh with each epoch."""
        metrics = {id(variable) for variable in self._model.metrics_variables}
        own = [variable for variable in self._model.variables if id(variable) not in metrics]
        return [*own, *self._optimizer.variables]


class KerasState(KerasVariables):
    """The variables of a compiled model and its optimizer, with the random states, as of ``snapshot``.

    Attributes:
        others: the callbacks beside ours.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - Keras ships no types
        super().__init__(model, model.optimizer)
        # Keras turns the sign of a smallest change once it knows which way is better.
        self.others = OtherCallbacks(settings={"min_delta"})
        self.snapshot()

    def snapshot(self) -> None:
        """Take a copy in memory, so that a later ``save`` in mid-epoch saves the epoch's start."""
        self._snapshot = _Copies(self.arrays(), random_states(), self.others.held())

    def content_at_step(self) -> _Copies:
        """Return the snapshot."""
        return self._snapshot

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote, and make it the snapshot."""
        super().load(folder)
        self.others.load(folder)
        self.snapshot()


def _as_array(variable: Any) -> "npt.NDArray[np.generic]":  # noqa: ANN401 - Keras ships no types
    import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it
    from keras import ops  # noqa: PLC0415 - importing the hooks must not import Keras

    array = np.array(ops.convert_to_numpy(variable))
    # bfloat16 has no form in .npz; float32 holds each of its values exactly.
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _nothing(*_args: object, **_kwargs: object) -> None:
    """Answer the events of Keras that do not matter here."""


_nothing._is_default = True  # type: ignore[attr-defined]  # noqa: SLF001 - Keras then does not even call it


class TrialCallback:
    """Tracks, restores, logs and saves a ``fit``.

    ``model.fit(..., callbacks=[..., TrialCallback(t)], initial_epoch=t.next_step)``: the last in
    the list, so that what other callbacks change and count is saved. On SIGTERM it leaves after the current
    batch; the epoch it breaks off is trained again from its start by the next attempt.

    Args:
        trial: the trial, inside its ``with`` block.
    """

    def __init__(self, trial: TrialSession) -> None:
        self._trial = trial
        self._params: Mapping[str, Any] = {}
        self._model: Any = None
        self._state: KerasState | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any of the events Keras may have
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Learn from Keras how many epochs there will be."""
        self._params = params

    def set_model(self, model: Any) -> None:  # noqa: ANN401 - Keras ships no types
        """Learn from Keras which model is trained."""
        self._model = model

    def on_train_begin(self, logs: object = None) -> None:  # noqa: ARG002 - Keras passes it by name
        """Restore the model and the other callbacks, and begin."""
        self._state = KerasState(self._model)
        self._trial.track(self._state, "keras")
        before = callbacks_before(self, self._trial.tell, without={"History", "ProgbarLogger"})
        for callback in before:
            if type(callback).__name__ == "CSVLogger" and not getattr(callback, "append", True):
                self._trial.tell("CSVLogger will remove its rows after a move: CSVLogger(path, append=True) keeps them")
        self._state.others.meet(before)
        self._state.snapshot()
        self._trial.begin(self._params.get("epochs"))

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras passes it by name
        """Note which epoch the metrics belong to.

        Raises:
            StateMismatchError: ``fit`` was not told to go on where the checkpoint ends.
        """
        if epoch != self._trial.next_step:
            message = f"fit began epoch {epoch}, not {self._trial.next_step}: pass initial_epoch=t.next_step"
            raise StateMismatchError(message)
        self._trial.step = epoch

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras passes it by name
        """Leave in mid-epoch if asked to."""
        if self._trial.stopping:
            self._trial.leave()

    on_test_batch_end = on_train_batch_end

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Log the epoch, and save if it is time to."""
        self._trial.log(logs, step=epoch)
        if self._state:
            self._state.snapshot()
        self._trial.finish_step(epoch)

    def on_train_end(self, logs: object = None) -> None:  # noqa: ARG002 - Keras passes it by name
        """Save what came out."""
        self._trial.finish_training()


def shuffled(trial: TrialSession, x: Any, y: Any, *, batch_size: int, seed: int) -> Any:  # noqa: ANN401 - arrays in, a Keras data set out
    """Return ``x`` and ``y`` as a data set for ``fit`` whose every epoch is shuffled again and can be resumed.

    Args:
        trial: the trial, which knows the epoch.
        x: inputs, shape ``(n, ...)``.
        y: targets, shape ``(n, ...)``.
        batch_size: rows in a batch.
        seed: any integer from 0; the order of each epoch follows from it.
    """
    import keras  # noqa: PLC0415 - importing the hooks must not import Keras

    per_epoch = batches_per_epoch(len(x), batch_size)

    class Shuffled(keras.utils.PyDataset):  # type: ignore[misc]  # Keras ships no types
        def __len__(self) -> int:
            return per_epoch

        def __getitem__(self, batch: int) -> tuple[Any, Any]:
            rows = batch_indices(len(x), batch_size, seed, trial.step * per_epoch + batch)
            return x[rows], y[rows]

    return Shuffled()
