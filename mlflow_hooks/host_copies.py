"""PyTorch: what a state holds, copied into the memory of the host, so that a thread may write it.

The memory of a copy is kept for the next one: to take new memory from the system costs several times as long as the
copy itself. Of a GPU, it is pinned, so that the card copies by itself.
"""

import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage

_COPIED_FROM: Final = frozenset({"cpu", "cuda"})


class HostCopies:
    """The memory for copies of one state, from one copy to the next."""

    def __init__(self) -> None:
        self._kept: list[UntypedStorage] = []

    @property
    def nbytes(self) -> int:
        """How many bytes are kept."""
        return sum(map(len, self._kept))

    def give_back(self) -> None:
        """Give them back."""
        self._kept = []

    def copied(self, held: Any) -> Any:  # noqa: ANN401 - plain containers of tensors, and whatever a part holds
        """Return a copy of ``held`` whose tensors are on the host, with every bit as it is now.

        Tensors that share memory, such as tied weights, share it in the copy too. The copy lasts until the next one.

        Raises:
            RuntimeError: there is no memory for it.
            MemoryError: the same.
        """
        copying = _Copying(self._kept)
        self._kept = []
        memo: dict[int, Any] = {id(tensor): copying.copied(tensor) for tensor in filter(_is_plain, _tensors(held))}
        # It finds in the memo what is copied already, and knows how to copy all else.
        there: Any = copy.deepcopy(held, memo)
        copying.finish()
        self._kept = copying.taken
        return there


class TorchContent:
    """What a state of PyTorch holds at a step.

    Args:
        held: plain containers of tensors.
        write: writes them into a folder.
        copies: of the state.
    """

    def __init__(self, held: Any, write: Callable[[Any, Path], None], copies: HostCopies) -> None:  # noqa: ANN401 - as above
        self._held = held
        self._write = write
        self._copies = copies
        sizes = [(len(storage), storage.device.type) for storage in _storages(_tensors(held))]
        self.nbytes = sum(size for size, _ in sizes)
        self.to_copy = max(0, sum(_taken(size, device) for size, device in sizes) - copies.nbytes)

    def copy(self) -> None:
        """Copy it into the memory of the host."""
        self._held = self._copies.copied(self._held)

    def give_back(self) -> None:
        """Give the memory back that is kept for the next copy."""
        self._copies.give_back()

    def write(self, folder: Path) -> None:
        """Write it into ``folder``."""
        self._write(self._held, folder)


class _Copying:
    """One copy: ``spare`` is memory of the copy before, and ``taken`` what this one uses."""

    def __init__(self, spare: "list[UntypedStorage]") -> None:
        self._spare: dict[tuple[int, bool], list[UntypedStorage]] = {}
        for storage in spare:
            self._spare.setdefault((len(storage), storage.is_pinned()), []).append(storage)
        self._copies: dict[int, UntypedStorage] = {}
        self._devices: set[int] = set()

    @property
    def taken(self) -> "list[UntypedStorage]":
        return list(self._copies.values())

    def copied(self, tensor: "Tensor") -> "Tensor":
        """Return ``tensor`` on the host; its bytes are there after ``finish``."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        own = tensor.untyped_storage()
        host = self._copies.get(_name(own))
        if host is None:
            host = self._copies[_name(own)] = self._room(len(own), pinned=own.is_cuda)
            host.copy_(own, non_blocking=own.is_cuda)
        if own.is_cuda:
            self._devices.add(tensor.get_device())
        there = torch.empty(0, dtype=tensor.dtype)
        there.set_(host, tensor.storage_offset(), tensor.size(), tensor.stride())
        return there.requires_grad_(tensor.requires_grad)

    def finish(self) -> None:
        """Wait until the bytes are there."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        for device in self._devices:
            torch.cuda.synchronize(device)

    def _room(self, nbytes: int, *, pinned: bool) -> "UntypedStorage":
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        if spare := self._spare.get((nbytes, pinned)):
            return spare.pop()
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=pinned).untyped_storage()


def _tensors(held: Any) -> "Iterator[Tensor]":  # noqa: ANN401 - as above
    """Yield the tensors in dicts, lists and tuples."""
    if isinstance(held, dict):
        held = tuple(held.values())
    if isinstance(held, list | tuple):
        for item in held:
            yield from _tensors(item)
    elif "torch" in sys.modules and isinstance(held, sys.modules["torch"].Tensor):
        yield held


def _storages(tensors: "Iterable[Tensor]") -> "list[UntypedStorage]":
    """Return the memory of ``tensors``, each once; of those that have no memory of one piece, none."""
    storages = [tensor.untyped_storage() for tensor in tensors if _is_plain(tensor)]
    return list({_name(storage): storage for storage in storages}.values())


def _name(storage: "UntypedStorage") -> int:
    """Return what tells a piece of memory from all others."""
    return int(storage._cdata)  # noqa: SLF001 - as torch.save tells them; an address is 0 for all empty ones


def _is_plain(tensor: "Tensor") -> bool:
    """Return whether memory, place, size and stride are all that there is to ``tensor``."""
    import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and tensor.device.type in _COPIED_FROM
        and tensor.is_leaf
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg() or tensor.__dict__)
    )


def _taken(nbytes: int, device: str) -> int:
    """Return the bytes of the host that a copy takes: PyTorch pins powers of two."""
    return 1 << max(0, nbytes - 1).bit_length() if device == "cuda" else nbytes
