"""PyTorch: several workers train one model on the batches that the author asked for, whatever their number."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mlflow_hooks.batches import batch_indices
from mlflow_hooks.errors import GangError
from mlflow_hooks.session import TrialSession
from mlflow_hooks.torch_gang import torch_gang

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor
    from torch.nn import Module

Losses = Callable[["Module", "Tensor"], "Tensor"]
"""Takes the model and some rows of the data set (int64, shape ``(n,)``); returns the loss of each (shape ``(n,)``)."""
_MANTISSA: Final = 52
"""Bits of a float64 after its first."""


def data_parallel(
    trial: TrialSession,
    model: "Module",
    *,
    rows: int,
    batch_size: int,
    seed: int,
    exact: bool = False,
) -> "DataParallel":
    """Split each batch over the workers of the trial; joins them, and gives all of them the weights of rank 0.

    Call it once the model is built. The batches are those of ``batch_indices``, so they follow from the seed and their
    number alone: neither more nor fewer workers change what a step learns from, and the learning rate stays right.

    By default the workers train with DistributedDataParallel, each loss weighted by its part of the batch. The model is
    then that of one worker up to rounding. With ``exact`` it is the same to the last bit, on the same kind of processor
    and with the same number of threads (one, unless you set ``OMP_NUM_THREADS``): each batch is cut into as many parts
    as the trial may have workers, and what these give is added up without rounding. That costs about half as much time
    again for a large batch, and twice for a tiny model; a worker needs memory for the gradients of each part it has.

    Args:
        trial: the trial, inside its ``with`` block.
        model: what is trained.
        rows: rows of the data set.
        batch_size: rows of a whole batch, over all workers.
        seed: any integer from 0; the order of the data follows from it.
        exact: whether the number of workers shall not even change the rounding.

    Raises:
        GangError: the model has a layer that needs the whole batch at once, such as BatchNorm.
        MigrationExit: a worker did not come in time.
        ValueError: a size is below 1 or the seed is below 0.
    """
    batch_indices(rows, batch_size, seed, 0)
    if trial.gang.workers_max > 1:
        _refuse_batch_layers(model)
        if exact:
            trial.use_threads(1)
    torch_gang(trial)
    kind = Exact if exact else Weighted
    return kind(trial, model, lambda minibatch: batch_indices(rows, batch_size, seed, minibatch), seed)


class DataParallel:
    """One model, trained by all workers of a trial. Made by ``data_parallel()``."""

    def __init__(
        self, trial: TrialSession, model: "Module", batch: Callable[[int], "npt.NDArray[np.int64]"], seed: int
    ) -> None:
        self._trial = trial
        self._gang = trial.gang
        self._model = model
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._batch = batch
        self._seed = seed

    def backward(self, losses: Losses, minibatch: int | None = None) -> float:
        """Set the gradients to those of the mean loss over a whole batch, the same ones on all workers.

        Gradients that are there before are dropped, so the optimizer's ``step`` follows without a ``zero_grad``.

        Args:
            losses: takes a model and the numbers of some rows, and returns the loss of each of these rows, as with
                ``reduction="none"``. It has to use the model that it is given.
            minibatch: number of the batch since training began; by default each step has one.

        Returns:
            The mean loss over the whole batch, the same on all workers.

        Raises:
            GangError: what ``losses`` returns cannot be split, or is not one loss for each row.
        """
        rows = self._batch(self._trial.step if minibatch is None else minibatch)
        for parameter in self._parameters:
            parameter.grad = None
        return self._backward(losses, rows, self._trial.step if minibatch is None else minibatch)

    def _backward(self, losses: Losses, rows: "npt.NDArray[np.int64]", minibatch: int) -> float:
        raise NotImplementedError

    def _sum(self, losses: Losses, model: "Module", rows: "npt.NDArray[np.int64]") -> "Tensor":
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        per_row = losses(model, torch.from_numpy(rows))
        if tuple(per_row.shape) != (len(rows),):
            message = (
                f"losses() returned shape {tuple(per_row.shape)} for {len(rows)} rows: it must return the loss of each"
                ' row, not their mean or sum, as with reduction="none"'
            )
            raise GangError(message)
        return per_row.sum()


class Weighted(DataParallel):
    """By DistributedDataParallel; each worker's loss counts as much as its part of the batch."""

    def __init__(
        self, trial: TrialSession, model: "Module", batch: Callable[[int], "npt.NDArray[np.int64]"], seed: int
    ) -> None:
        super().__init__(trial, model, batch, seed)
        self._checked = trial.gang.workers_max == 1
        self._wrapped = model
        if trial.gang.workers > 1:
            from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415 - costs more than PyTorch itself

            self._wrapped = DistributedDataParallel(model)

    def _backward(self, losses: Losses, rows: "npt.NDArray[np.int64]", minibatch: int) -> float:  # noqa: ARG002 - for random layers
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        share = self._gang.share(rows)
        # All workers have to take part, also those for which a short batch has no row.
        weight = 1.0 if len(share) else 0.0
        before = None if self._checked else torch.get_rng_state()
        loss = self._sum(losses, self._wrapped, share if len(share) else rows[:1]) * weight
        if before is not None and not torch.equal(before, torch.get_rng_state()):
            message = (
                "the losses draw random numbers, as Dropout does: with another number of workers they would be"
                " others, and so would the model. Pass exact=True, which seeds them for each part of a batch"
            )
            raise GangError(message)
        self._checked = True
        # DistributedDataParallel takes the mean over workers.
        (loss * (self._gang.workers / len(rows))).backward()  # type: ignore[no-untyped-call]  # of PyTorch's
        return self._gang.exchange([loss.item()])[0] / len(rows)


class Exact(DataParallel):
    """By as many parts of each batch as there may be workers, added up so that their grouping does not matter."""

    def __init__(
        self, trial: TrialSession, model: "Module", batch: Callable[[int], "npt.NDArray[np.int64]"], seed: int
    ) -> None:
        super().__init__(trial, model, batch, seed)
        if trial.gang.workers > 1:
            import torch.distributed as dist  # noqa: PLC0415 - importing the hooks must not import PyTorch

            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.detach(), 0)

    def _backward(self, losses: Losses, rows: "npt.NDArray[np.int64]", minibatch: int) -> float:
        import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        parts = np.array_split(rows, self._gang.workers_max)
        tensors: list[list[Tensor | None]] = []
        for number in range(self._gang.rank, len(parts), self._gang.workers):
            if len(parts[number]):
                with torch.random.fork_rng(devices=_devices()):
                    torch.manual_seed(_seed(self._seed, minibatch, number))
                    tensors.append(self._part(losses, parts[number]))
        tops = self._largest(tensors)
        sums = self._add(tensors, tops)
        for parameter, top, total in zip(self._parameters, tops, sums, strict=False):
            parameter.grad = None if top < 0 else (total / len(rows)).view_as(parameter).to(parameter)
        return sums[-1].item() / len(rows)

    def _part(self, losses: Losses, rows: "npt.NDArray[np.int64]") -> "list[Tensor | None]":
        """Return the gradients of the loss summed over ``rows``, None where there is none, and that loss."""
        loss = self._sum(losses, self._model, rows)
        loss.backward()  # type: ignore[no-untyped-call]  # PyTorch leaves it untyped
        gradients = [parameter.grad for parameter in self._parameters]
        for parameter in self._parameters:
            parameter.grad = None
        return [*gradients, loss.detach()]

    def _largest(self, tensors: "list[list[Tensor | None]]") -> "list[float]":
        """Return the largest magnitude in each tensor over all parts on all workers; -1 where nobody has one."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        count = len(self._parameters) + 1
        magnitudes = [[-1.0 if tensor is None else tensor.abs().max().item() for tensor in part] for part in tensors]
        largest = torch.tensor([[-1.0] * count, *magnitudes], dtype=torch.float64).amax(dim=0)
        if self._gang.workers > 1:
            torch.distributed.all_reduce(largest, torch.distributed.ReduceOp.MAX)
        tops: list[float] = largest.tolist()
        return tops

    def _add(self, tensors: "list[list[Tensor | None]]", tops: "list[float]") -> "list[Tensor]":
        """Return the sum of each tensor over all parts on all workers, flat, in float64."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        sizes = [parameter.numel() for parameter in self._parameters] + [1]
        device = self._parameters[0].device
        total = torch.zeros(sum(sizes), dtype=torch.float64, device=device)
        for part in tensors:
            for place, tensor, top in zip(torch.split(total, sizes), part, tops, strict=True):
                if tensor is not None:
                    place.add_(on_grid(tensor.flatten(), top, self._gang.workers_max))
        if self._gang.workers > 1:
            torch.distributed.all_reduce(total)
        return list(torch.split(total, sizes))


def on_grid(values: "Tensor", top: float, terms: int) -> "Tensor":
    """Return ``values`` in float64, rounded so that the sum of ``terms`` such tensors is exact in any order.

    A sum of floats depends on its order only where it rounds. Multiples of one power of two do not, as long as the sum
    needs no more bits than a float64 has. For up to 64 terms, 46 bits are left of the largest value.

    Args:
        values: any floats.
        top: magnitude that none of the values of any term exceeds.
        terms: how many are added up.
    """
    import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

    if not 0 < top < math.inf:
        return values.double()
    grid = math.ldexp(1.0, math.frexp(top)[1] + (terms - 1).bit_length() - _MANTISSA)
    return torch.round(values.double() / grid) * grid


def _seed(seed: int, minibatch: int, part: int) -> int:
    import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it

    return int(np.random.SeedSequence([seed, minibatch, part]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _devices() -> list[int]:
    import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

    return [torch.cuda.current_device()] if torch.cuda.is_available() else []


def _refuse_batch_layers(model: "Module") -> None:
    import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

    batch_norm = torch.nn.modules.batchnorm._BatchNorm  # noqa: SLF001 - the base of all its kinds, lazy and synchronised ones too
    for name, layer in model.named_modules():
        tracking = isinstance(layer, torch.nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats  # noqa: SLF001 - see above
        if isinstance(layer, batch_norm) or tracking:
            message = (
                f"the layer {name or 'model'!r} is a {type(layer).__name__}, whose result depends on all rows of a"
                " batch: split over workers it makes another model. Use GroupNorm or LayerNorm, or workers=1"
            )
            raise GangError(message)
