"""TensorFlow: joins the workers of a trial in a MultiWorkerMirroredStrategy, for a training loop of your own."""

import json
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any

from mlflow_hooks import contract
from mlflow_hooks.gang import SILENCE_S
from mlflow_hooks.session import TrialSession


def tensorflow_gang(trial: TrialSession, *, silence_s: float = SILENCE_S) -> Any:  # noqa: ANN401 - TensorFlow ships no types
    """Return the strategy under which this worker trains with the others of its trial.

    Call it before TensorFlow computes anything. Alone, a worker gets TensorFlow's default strategy, under which the
    same loop runs. ``fit`` does not work under the other one with Keras 3.

    Args:
        trial: the trial, inside its ``with`` block.
        silence_s: seconds without an answer after which another worker counts as lost.

    Returns:
        A ``tf.distribute.Strategy``.

    Raises:
        MigrationExit: a worker did not come in time.
    """
    import tensorflow as tf  # noqa: PLC0415 - importing the hooks must not import TensorFlow

    gang = trial.gang
    if gang.workers == 1:
        return tf.distribute.get_strategy()
    address = os.environ.get(contract.ENV_POD_IP) or "127.0.0.1"
    with socket.socket() as port:
        port.bind((address, 0))  # kept from others until all know of it
        workers = gang.roll_call("here", f"{address}:{port.getsockname()[1]}")
    task = {"type": "worker", "index": gang.rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=silence_s)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    # The strategy has taken SIGTERM over without Python's knowledge.
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    gang.join(TensorflowGroup(strategy))
    return strategy


class TensorflowGroup:
    """The workers of a strategy."""

    def __init__(self, strategy: Any) -> None:  # noqa: ANN401 - TensorFlow ships no types
        import tensorflow as tf  # noqa: PLC0415 - importing the hooks must not import TensorFlow

        def add(numbers: Any) -> Any:  # noqa: ANN401 - see above
            own = strategy.run(tf.identity, args=(numbers,))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, own, axis=None)

        self._add = tf.function(add)

    def add(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums over all workers."""
        import tensorflow as tf  # noqa: PLC0415 - importing the hooks must not import TensorFlow

        sums: list[float] = self._add(tf.constant(numbers, tf.float64)).numpy().tolist()
        return sums

    def blames_others(self, error: BaseException) -> bool:
        """Return whether a collective has failed."""
        import tensorflow as tf  # noqa: PLC0415 - importing the hooks must not import TensorFlow

        lost = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError)
        return isinstance(error, (*lost, tf.errors.CancelledError))

    def close(self) -> None:
        """Leave it to TensorFlow, which closes its connections when the process ends."""
