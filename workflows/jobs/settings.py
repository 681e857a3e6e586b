"""What every job takes on its command line."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How long, how large and how fast to train. A step is ``work`` minibatches and one validation."""

    lr: float
    steps: int
    hidden: int
    batch_size: int
    work: int
    seed: int = 0


_HELP = {
    "lr": "learning rate of Adam",
    "steps": "how many steps to train for; each logs one point of the curve",
    "hidden": "units of the hidden layer",
    "batch_size": "examples in a minibatch",
    "work": "minibatches in a step: the CPU time of a step is about proportional to it",
    "seed": "seed of the first weights, the order of the data and the noise",
}


def parse_settings(defaults: TrainingSettings, argv: Sequence[str] | None = None) -> TrainingSettings:
    """Read settings such as ``--lr=0.003 --batch-size=32`` (or ``--batch_size=32``), else take the job's own.

    Raises:
        SystemExit: with a message that names the offending argument and its value.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for field in fields(TrainingSettings):
        default = getattr(defaults, field.name)
        names = dict.fromkeys(("--" + field.name.replace("_", "-"), "--" + field.name))
        read = _number(type(default), least=0 if field.name == "seed" else None)
        parser.add_argument(*names, type=read, default=default, help=_HELP[field.name])
    return TrainingSettings(**vars(parser.parse_args(argv)))


def _number(kind: type[float], least: int | None) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = kind(text)
        if 0 < value < float("inf") or value == least:
            return value
        message = f"must be positive and finite, got {text}"
        raise argparse.ArgumentTypeError(message)

    read.__name__ = kind.__name__
    return read
