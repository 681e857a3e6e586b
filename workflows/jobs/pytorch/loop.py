"""The training loop that the PyTorch jobs share."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.optim import Adam

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.pytorch import torch_state
from workflows.jobs.data import Dataset, Examples
from workflows.jobs.settings import TrainingSettings


class Model(nn.Module, ABC):
    """A network that knows what to minimise and what to report."""

    @abstractmethod
    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return what training minimises, averaged over the minibatch."""

    def metrics(self, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        """Return what a step reports of the validation examples: ``loss`` at least."""
        return {"loss": self.loss(inputs, targets).item()}


class Classifier(Model):
    """A network whose output is one score per class. Loss: cross entropy (the thesis's "Softmax")."""

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy in nats."""
        return nn.functional.cross_entropy(self(inputs), targets)

    def metrics(self, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        """Return the cross entropy and the share of examples classified right."""
        scores = self(inputs)
        loss = nn.functional.cross_entropy(scores, targets)
        right = (scores.argmax(dim=1) == targets).float().mean()
        return {"loss": loss.item(), "accuracy": right.item()}


def fit(model: Model, data: Dataset, settings: TrainingSettings) -> None:
    """Train with Adam as one trial: restored where a checkpoint is, one point of the curve per step."""
    optimizer = Adam(model.parameters(), lr=settings.lr)
    train, valid = tensors(data.train), tensors(data.valid)
    with trial() as t:
        t.track(torch_state(model, optimizer))
        for step in t.steps(settings.steps):
            _train(model, optimizer, train, settings, step)
            t.log(validate(model, valid))


def _train(model: Model, optimizer: Adam, data: tuple[Tensor, Tensor], settings: TrainingSettings, step: int) -> None:
    """Take ``work`` minibatches. Order and noise follow from seed and step, so a resumed trial repeats nothing."""
    torch.manual_seed(settings.seed * 1_000_003 + step)
    model.train()
    inputs, targets = data
    for minibatch in range(step * settings.work, (step + 1) * settings.work):
        rows = torch.from_numpy(batch_indices(len(inputs), settings.batch_size, settings.seed, minibatch))
        optimizer.zero_grad()
        loss = model.loss(inputs[rows], targets[rows])
        loss.backward()  # type: ignore[no-untyped-call]  # PyTorch leaves it untyped
        optimizer.step()


@torch.no_grad()
def validate(model: Model, data: tuple[Tensor, Tensor]) -> dict[str, float]:
    """Return what the model reports of validation examples."""
    model.eval()
    return model.metrics(*data)


def tensors(examples: Examples) -> tuple[Tensor, Tensor]:
    """Return inputs and targets: copies, as the data may be read-only views."""
    return torch.tensor(examples.inputs), torch.tensor(examples.targets)
