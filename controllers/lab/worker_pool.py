"""Processes that compute for the process that started them, and end with it."""

import gc
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process

from mlflow_hooks.system import cores_here


def worker_pool(processes: int | None = None) -> ProcessPoolExecutor:
    """Return a pool of that many processes, None for one on each core that may be used.

    They are spawned: a fork would copy a progress bar's thread in the middle of what it does.
    """
    workers = processes or cores_here()
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_prepare)


def _prepare() -> None:
    """Make this process end when the one that started it ends, even by a kill, and seldom look for garbage.

    A simulation makes many objects and hardly a cycle among them: by default, looking for those takes a tenth of it.
    """
    gc.set_threshold(100_000, 20, 20)

    def follow() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
