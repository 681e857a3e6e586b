"""As many threads as the trial may have cores, and in PyTorch no more of them than pay."""

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from mlflow_hooks import contract
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.state_folder import read_object, report, write_whole
from mlflow_hooks.system import cores_here

SAVING: Final = 0.2
"""Half as many threads are better if they save at least this part of a step's CPU seconds.

Measured by ``benchmarks/threads.py``: a small model saves 20 to 90 %, a large one less than 10 %.
"""
_ENOUGH_S: Final = 10.0
"""Steps of so many CPU seconds together tell what one costs."""
_LOOK_S: Final = 1.0
_SOME_S: Final = 0.2
"""Steps of so many CPU seconds together do, if there are ``_SOME_STEPS`` of them."""
_SOME_STEPS: Final = 4
"""With so many steps their median counts: programs beside a trial make single steps dear."""

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def thread_count() -> int:
    """Return how many compute threads this attempt should use now: whole cores, at least one."""
    return max(1, math.floor(cores()))


def cores() -> float:
    """Return the cores this process may use: the least of its share, its part now, its cgroup quotas and its affinity.

    Raises:
        BadEnvironmentError: ``SPECON_CPUS`` is not a positive number.
    """
    return min([float(cores_here()), *_share(), *_part_now(), *_quotas()])


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


def follow_share(most: int | None = None) -> None:
    """Give PyTorch, where it is in use, the threads that the share allows now, ``most`` at most.

    A number that the user chose with ``OMP_NUM_THREADS`` stays.
    """
    count = min(thread_count(), most or sys.maxsize)
    if _may_choose() and (torch := sys.modules["torch"]).get_num_threads() != count:
        torch.set_num_threads(count)


def _may_choose() -> bool:
    chosen = os.environ.get("OMP_NUM_THREADS")
    return "torch" in sys.modules and chosen in {None, os.environ.get(contract.ENV_THREADS)}


class ThreadSearch:
    """Finds, in the first steps of a training, how many of the threads that PyTorch may have pay.

    Threads that share small operations cost more CPU than they save time, and what they cost is missing to the trials
    beside them. So half of them go, again and again, for as long as a step then costs less CPU: CPU seconds tell that
    on a busy node too, where time does not. Later attempts go on with what was found, since another number gives other
    rounding errors.

    Attributes:
        most: what was found, or is being tried; None for all.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "threads.json"
        most = read_object(self._file).get("threads")
        self.most: int | None = most if isinstance(most, int) and most > 0 else None
        self._over = self.most is not None
        self._tried: list[int] = []
        self._cost_s = math.inf
        self._steps_s: list[float] = []
        self._noted_at = 0.0
        self._look_at = 0.0

    def settle_on(self, count: int) -> None:
        """Search no more, and use ``count`` threads, where the user has chosen no other number."""
        self._over = True
        self.most = count
        follow_share(count)

    def step_done(self) -> None:
        """Take note of a step, and try another number from the next one on if it is time to."""
        if not _may_choose():
            return
        self._follow()
        if self._over:
            return
        now = time.process_time()
        step_s, self._noted_at = now - self._noted_at, now
        if not self._tried:  # the first step has other work to do
            self._try(thread_count())
            return
        self._steps_s.append(step_s)
        spent_s = sum(self._steps_s)
        if spent_s < _ENOUGH_S and (spent_s < _SOME_S or len(self._steps_s) < _SOME_STEPS):
            return
        before_s, self._cost_s = self._cost_s, statistics.median(self._steps_s)
        if self._cost_s > before_s * (1 - SAVING):
            self._settle(self._tried[-2])
        elif self._tried[-1] == 1:
            self._settle(1)
        else:
            self._try(self._tried[-1] // 2)

    def _follow(self) -> None:
        """Follow the share, looked at once a second; what was found for fewer threads tells nothing of more."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_S
        if self._tried and self.most is None and thread_count() > self._tried[0]:
            self._over, self._tried, self._cost_s = False, [], math.inf
        follow_share(self.most)

    def _try(self, count: int) -> None:
        self._over = count == 1 and not self._tried
        self._tried.append(count)
        self._steps_s = []
        self._limit(count)

    def _settle(self, count: int) -> None:
        self._over = True
        self._limit(count)
        if self.most:
            try:
                write_whole(self._file, json.dumps({"threads": self.most}))
            except OSError as error:
                report(f"cannot keep how many threads pay ({error}); the next attempt finds out again")

    def _limit(self, count: int) -> None:
        self.most = count if count < self._tried[0] else None
        follow_share(self.most)


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


def _part_now() -> list[float]:
    """Return the fair part of the cores that this attempt has now, where a file tells it."""
    try:
        part = float(Path(os.environ[contract.ENV_CPUS_FILE]).read_text())
    except (KeyError, OSError, ValueError):  # nobody tells, or no more
        return []
    return [part] if part > 0 and math.isfinite(part) else []


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
        cores = quota(folder)
        if cores is not None:
            yield cores


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
