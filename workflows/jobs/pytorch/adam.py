"""Adam (Kingma and Ba, 2015, algorithm 1), without what ``torch.optim`` imports.

The first use of any optimiser of ``torch.optim`` imports PyTorch's compiler: three CPU seconds, which is more than
all the rest of a move takes, and which a trial would pay again after every move.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class Adam:
    """The same numbers as ``torch.optim.Adam``, for parameters that are all dense and on one device."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self._parameters = list(parameters)
        self._lr, self._betas, self._epsilon = lr, betas, 1e-8
        self._means = [torch.zeros_like(p) for p in self._parameters]
        self._squares = [torch.zeros_like(p) for p in self._parameters]
        self._steps = 0

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters along their gradients' bias-corrected means."""
        self._steps += 1
        first, second = self._betas
        shrink = (1 - second**self._steps) ** 0.5
        for parameter, mean, square in zip(self._parameters, self._means, self._squares, strict=True):
            if parameter.grad is not None:
                mean.lerp_(parameter.grad, 1 - first)
                square.mul_(second).addcmul_(parameter.grad, parameter.grad, value=1 - second)
                width = (square.sqrt() / shrink).add_(self._epsilon)
                parameter.addcdiv_(mean, width, value=-self._lr / (1 - first**self._steps))

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs to go on."""
        return {"steps": self._steps, "means": self._means, "squares": self._squares}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` returned for the same parameters."""
        self._steps = int(state["steps"])
        self._means, self._squares = list(state["means"]), list(state["squares"])
