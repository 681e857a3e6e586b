"""A network with the hyperparameters that people tune, on any of eight sets of real data.

Made for sweeps that look for the best model: some of its trials learn nothing, some diverge, few are good.

    python -m workflows.jobs.pytorch.tuned --data=digits --lr=0.01 --optimizer=sgd --schedule=cosine
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Final

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.pytorch import torch_state
from workflows.jobs import data
from workflows.jobs.data import Dataset
from workflows.jobs.pytorch.loop import tensors

DATA: Final[dict[str, Callable[[], Dataset]]] = {
    "digits": data.digit_images,
    "partial-digits": data.partial_digit_rows,
    "sunspots": data.sunspot_windows,
    "nino": data.nino_months,
    "tumours": data.tumours,
    "marriages": data.marriages,
    "doctor-visits": data.doctor_visits,
    "diabetes": data.diabetes,
}
OPTIMIZERS: Final = ("adam", "sgd")
WARM_UP: Final = 0.3
"""Part of a one-cycle schedule in which the learning rate rises."""
_LEAST_FACTOR: Final = 0.04


@dataclass(frozen=True, slots=True)
class Tuned:
    """The settings of a training. A step is ``work`` minibatches and one validation; widths are units of a layer."""

    data: str = "digits"
    lr: float = 0.01
    width: int = 64
    depth: int = 2
    batch_size: int = 32
    weight_decay: float = 1e-5
    dropout: float = 0.0
    optimizer: str = "adam"
    momentum: float = 0.9
    schedule: str = "constant"
    steps: int = 50
    work: int = 30
    seed: int = 0


def constant(part: float) -> float:
    """Return the factor of the learning rate after that part of a training: always 1."""
    del part
    return 1.0


def cosine(part: float) -> float:
    """Return the factor of the learning rate after that part of a training: from 1 down to 0."""
    return (1 + math.cos(math.pi * part)) / 2


def one_cycle(part: float) -> float:
    """Return the factor of the learning rate after that part of a training: up for the first 30 %, then down to 0."""
    if part < WARM_UP:
        return _LEAST_FACTOR + (1 - _LEAST_FACTOR) * part / WARM_UP
    return cosine((part - WARM_UP) / (1 - WARM_UP))


SCHEDULES: Final[dict[str, Callable[[float], float]]] = {
    "constant": constant,
    "cosine": cosine,
    "one-cycle": one_cycle,
}


class Training:
    """One training, step by step: what a step does follows from the settings and its number alone."""

    def __init__(self, tuned: Tuned) -> None:
        torch.manual_seed(tuned.seed)
        examples = DATA[tuned.data]()
        self._tuned = tuned
        self._train, self._valid = tensors(examples.train), tensors(examples.valid)
        self.model = _network(tuned, *self._train)
        self.optimizer = _optimizer(tuned, self.model)

    def step(self, number: int) -> None:
        """Take the minibatches of a step, which count from 0."""
        given, (inputs, targets) = self._tuned, self._train
        torch.manual_seed(given.seed * 1_000_003 + number)
        self.model.train()
        for minibatch in range(number * given.work, (number + 1) * given.work):
            factor = SCHEDULES[given.schedule](minibatch / (given.steps * given.work))
            for group in self.optimizer.param_groups:
                group["lr"] = given.lr * factor
            rows = torch.from_numpy(batch_indices(len(inputs), given.batch_size, given.seed, minibatch))
            self.optimizer.zero_grad()
            _loss(self.model(inputs[rows]), targets[rows]).backward()  # type: ignore[no-untyped-call]  # of PyTorch's
            self.optimizer.step()

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return the loss on the validation examples, and the part of them in the right class if there are classes."""
        self.model.eval()
        inputs, targets = self._valid
        scores = self.model(inputs)
        metrics = {"loss": _loss(scores, targets).item()}
        if not targets.is_floating_point():
            classes = _by_class(scores, targets)
            metrics["accuracy"] = (classes.argmax(dim=1) == targets.flatten()).float().mean().item()
        return metrics


def _network(tuned: Tuned, inputs: Tensor, targets: Tensor) -> nn.Sequential:
    classes = int(targets.max()) + 1 if not targets.is_floating_point() else 1
    places = targets[0].numel()
    size, layers = inputs[0].numel(), list[nn.Module]()
    for _ in range(tuned.depth):
        layers += [nn.Linear(size, tuned.width), nn.ReLU(), nn.Dropout(tuned.dropout)]
        size = tuned.width
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(size, classes * places))


def _optimizer(tuned: Tuned, model: nn.Module) -> Optimizer:
    if tuned.optimizer == "sgd":
        return SGD(model.parameters(), lr=tuned.lr, momentum=tuned.momentum, weight_decay=tuned.weight_decay)
    return Adam(model.parameters(), lr=tuned.lr, betas=(tuned.momentum, 0.999), weight_decay=tuned.weight_decay)


def _loss(scores: Tensor, targets: Tensor) -> Tensor:
    if targets.is_floating_point():
        return nn.functional.mse_loss(scores, targets)
    return nn.functional.cross_entropy(_by_class(scores, targets), targets.flatten())


def _by_class(scores: Tensor, targets: Tensor) -> Tensor:
    """Return scores (examples times places, classes)."""
    return scores.reshape(targets.numel(), -1)


def parse(argv: Sequence[str] | None = None) -> Tuned:
    """Read settings such as ``--lr=0.003 --batch_size=32``.

    Raises:
        SystemExit: with a message that names the offending argument and its value.
    """
    choices = {"data": tuple(DATA), "optimizer": OPTIMIZERS, "schedule": tuple(SCHEDULES)}
    parser = argparse.ArgumentParser(allow_abbrev=False, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for field in fields(Tuned):
        names = dict.fromkeys(("--" + field.name.replace("_", "-"), "--" + field.name))
        default = getattr(Tuned(), field.name)
        parser.add_argument(*names, type=type(default), default=default, choices=choices.get(field.name), help=" ")
    given = parser.parse_args(argv)
    for name in ("lr", "width", "depth", "batch_size", "steps", "work"):
        if not 0 < getattr(given, name) < math.inf:
            parser.error(f"--{name} must be positive and finite, got {getattr(given, name)}")
    if not (0 <= given.dropout < 1 and 0 <= given.momentum < 1 and 0 <= given.weight_decay < math.inf):
        parser.error(f"--dropout and --momentum lie in [0, 1), --weight_decay is not negative, got {given}")
    return Tuned(**vars(given))


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    tuned = parse(argv)
    training = Training(tuned)
    with trial() as t:
        t.track(torch_state(training.model, training.optimizer))
        for step in t.steps(tuned.steps):
            training.step(step)
            t.log(training.validate())


if __name__ == "__main__":
    main()
