"""As many threads as the trial has cores: more of them spin against each other."""

import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mlflow_hooks import contract
from mlflow_hooks.errors import BadEnvironmentError

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def thread_count() -> int:
    """Return how many compute threads this attempt should use now: whole cores, at least one."""
    return max(1, math.floor(cores()))


def cores() -> float:
    """Return the cores this process may use: the least of its share, its cgroup quotas and its affinity.

    Raises:
        BadEnvironmentError: ``SPECON_CPUS`` is not a positive number.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([float(affinity), *_share(), *_quotas()])


def prepare_threads() -> None:
    """Set what training frameworks read before they start; what the user has set stays."""
    count = str(thread_count())
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    chosen = [name for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS") if name in os.environ]
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", count)
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", count)
    if not chosen:
        _limit_imported_tensorflow(int(count))
    follow_share()


def follow_share() -> None:
    """Give PyTorch, where it is in use, the threads that the share allows now.

    A number that the user chose with ``OMP_NUM_THREADS`` stays.
    """
    torch = sys.modules.get("torch")
    count = thread_count()
    if torch is not None and "OMP_NUM_THREADS" not in os.environ and torch.get_num_threads() != count:
        torch.set_num_threads(count)


def _limit_imported_tensorflow(count: int) -> None:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return
    try:
        tensorflow.config.threading.set_intra_op_parallelism_threads(count)
        tensorflow.config.threading.set_inter_op_parallelism_threads(count)
    except RuntimeError:  # it has started computing and takes no other number now
        return


def _share() -> list[float]:
    text = os.environ.get(contract.ENV_CPUS)
    if not text:
        return []
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not (share > 0 and math.isfinite(share)):
        message = f"{contract.ENV_CPUS} must be a positive number of cores, not {text!r}"
        raise BadEnvironmentError(message)
    return [share]


def _quotas() -> Iterator[float]:
    try:
        lines = _OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _walk(_CGROUPS, path, _quota_v2)
        elif "cpu" in controllers.split(","):
            yield from _walk(_CGROUPS / "cpu", path, _quota_v1)


def _walk(root: Path, path: str, quota: Callable[[Path], float | None]) -> Iterator[float]:
    """Yield the quota of each cgroup from ours up to the root; in a container the path may be the host's."""
    inside = root / path.lstrip("/")
    folders = [inside, *inside.parents] if inside.is_dir() else [root]
    for folder in folders:
        if folder != root and root not in folder.parents:
            return
        found = quota(folder)
        if found is not None:
            yield found


def _quota_v2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no such file at the root, or "max"
        return None


def _quota_v1(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        return quota / int((folder / "cpu.cfs_period_us").read_text()) if quota > 0 else None
    except (OSError, ValueError):
        return None
