"""PyTorch: joins the workers of a trial in a process group, gloo on CPUs and nccl where there are GPUs."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from mlflow_hooks import contract
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.gang import SILENCE_S, Gang
from mlflow_hooks.session import TrialSession
from mlflow_hooks.system import address_of

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_HERE: Final = "here"


def torch_gang(trial: TrialSession, *, silence_s: float = SILENCE_S) -> Gang:
    """Join the process group of the trial's workers, and return this worker's place among them.

    ``data_parallel`` does it by itself: call this where the script splits the work in a way of its own. All workers
    then make the same steps, each with the same collectives. A trial of one worker has nothing to join. Also where
    torchrun started the workers.

    Args:
        trial: the trial, inside its ``with`` block.
        silence_s: seconds without an answer after which another worker counts as lost: more than any step takes longer
            on one worker than on another, and more than rank 0 takes for a checkpoint.

    Raises:
        BadEnvironmentError: ``SPECON_POD_IP`` is no address of this machine.
        MigrationExit: a worker did not come in time.
    """
    gang = trial.gang
    if gang.joined:
        return gang
    import torch.distributed as dist  # noqa: PLC0415 - importing the hooks must not import PyTorch

    address = os.environ.get(contract.ENV_POD_IP)
    patience = timedelta(seconds=silence_s)
    _choose_interface(address)
    store = _meet_at(gang, address, patience) if address else _meet_in_file(gang)
    gang.join(TorchGroup())
    dist.init_process_group(_backend(), store=store, rank=gang.rank, world_size=gang.workers, timeout=patience)
    return gang


def _meet_in_file(gang: Gang) -> "Store":
    from torch.distributed import FileStore  # type: ignore[attr-defined]  # noqa: PLC0415 - PyTorch does not list it

    gang.roll_call(_HERE)
    # Without addresses all workers run on this machine, whatever keeps their checkpoints.
    gang.local_folder.mkdir(parents=True, exist_ok=True)
    return FileStore(str(gang.local_folder / "rendezvous"), gang.workers)


def _meet_at(gang: Gang, address: str, patience: timedelta) -> "Store":
    """Return a store at a port of rank 0, who tells the others which."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # noqa: PLC0415 - PyTorch does not list it

    if gang.rank == 0:
        try:
            store = TCPStore(address, 0, gang.workers, is_master=True, timeout=patience, wait_for_workers=False)
        except RuntimeError as error:
            message = f"{contract.ENV_POD_IP} is {address!r}, where nothing can listen ({error})"
            raise BadEnvironmentError(message) from error
        gang.roll_call(_HERE, f"{address}:{store.port}")
        return store
    host, _, port = gang.roll_call(_HERE)[0].rpartition(":")
    return TCPStore(host, int(port), gang.workers, is_master=False, timeout=patience)


class TorchGroup:
    """The default process group."""

    def add(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums over all workers."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        totals = torch.tensor(numbers, dtype=torch.float64)
        torch.distributed.all_reduce(totals)
        sums: list[float] = totals.tolist()
        return sums

    def blames_others(self, error: BaseException) -> bool:
        """Return whether a collective has failed: gloo raises plain errors, which name its source files."""
        import torch.distributed as dist  # noqa: PLC0415 - importing the hooks must not import PyTorch

        return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))

    def close(self) -> None:
        """Give the process group up."""
        import torch.distributed as dist  # noqa: PLC0415 - importing the hooks must not import PyTorch

        with suppress(RuntimeError, ValueError, AssertionError):  # to close a group that broke raises one of these
            dist.destroy_process_group()


def _backend() -> str:
    import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

    if not torch.cuda.is_available():
        return "gloo"
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")  # else nccl aborts the process where another has gone
    return "cpu:gloo,cuda:nccl"


def _choose_interface(address: str | None) -> None:
    """Have gloo connect where ``address`` is, on this machine by default; else it asks what the host's name means.

    What the user has chosen stays, and so does what gloo finds by itself where the system cannot be asked.
    """
    wanted = address or "127.0.0.1"
    with suppress(OSError):
        for _, name in socket.if_nameindex():
            if "GLOO_SOCKET_IFNAME" not in os.environ and address_of(name) == wanted:
                os.environ["GLOO_SOCKET_IFNAME"] = name
