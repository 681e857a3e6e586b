"""The same trial with our hooks: ``python -m benchmarks.own_machine.hooked``, with the options of ``train``."""

from benchmarks.own_machine.stamps import Stamps
from benchmarks.own_machine.train import STEPS, Training, parse
from mlflow_hooks import trial


def main() -> None:
    """Train, and log the loss of each step."""
    given = parse()
    with Stamps.of(given) as stamps:
        training = Training(given.lr, given.work, given.memory)
        with trial() as t:
            t.track(training)
            for step in t.steps(STEPS):
                t.log(loss=training.step(step))
                stamps.stepped()
        stamps.ended(training.loss())


if __name__ == "__main__":
    main()
