"""The environment of an attempt: the user's own, and what this machine promises on top of it."""

import math
from collections.abc import Collection, Mapping
from typing import Final

from controllers.worlds.local.launchers import OURS, is_among, is_of_a_launcher
from mlflow_hooks import contract

_OF_AN_ATTEMPT: Final = frozenset(
    {
        *("MLFLOW_RUN_ID", "MLFLOW_RUN_CONTEXT", "MLFLOW_EXPERIMENT_NAME"),
        *("RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "PWD"),
    }
)
"""Differ between attempts. No library reads them while it is imported: they count once a device or a run is opened."""
_APPLIED_TO_A_FORK: Final = frozenset({"PYTHONPATH", "PYTHONUNBUFFERED"})
_THREADS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LOOPBACK: Final = ("127.0.0.1", "localhost")


def inherit_environment(env: Mapping[str, str], let_through: Collection[str] = ()) -> dict[str, str]:
    """Return what trials get of the environment that a sweep is started in.

    Inside a job of torchrun, of MPI, of Slurm or of another sweep, this environment has variables that tell *that*
    job's worker who it is. A trial that believed them would wait for workers that nobody starts, or log into a
    stranger's run.

    Args:
        env: that environment.
        let_through: names of such variables that trials get all the same; ``*`` at the end stands for any end.
    """
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(OURS) and (is_among(name, let_through) or not is_of_a_launcher(name))
    }


def without_proxy(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that keep a proxy from what listens on this machine, both as they are spelt."""
    given = env.get("no_proxy") or env.get("NO_PROXY") or ""
    names = [name.strip() for name in given.split(",") if name.strip()]
    whole = ",".join([*names, *(name for name in _LOOPBACK if name not in names)])
    return {"no_proxy": whole, "NO_PROXY": whole}


def common(env: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an attempt's environment that libraries may read while they are imported."""
    differing = _OF_AN_ATTEMPT | _APPLIED_TO_A_FORK
    return {name: value for name, value in env.items() if name not in differing and not name.startswith(OURS)}


def compose_environment(
    inherited: Mapping[str, str], of_step: Mapping[str, str], imposed: Mapping[str, str], cpus: float, part: float
) -> dict[str, str]:
    """Return the environment of an attempt, but for what tells it from other attempts of its step.

    Args:
        inherited: what it has of the sweep's environment.
        of_step: what its step names.
        imposed: what has the last word.
        cpus: cores that it may use at most.
        part: its fair part of them; its libraries compute with as many threads, unless the user chose a number.
    """
    whole = {**inherited, **of_step, **imposed, contract.ENV_CPUS: f"{cpus:g}"}
    # More threads than cores cost more than they save, most of all where they wait for each other by spinning.
    whole.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if threads := threads_of(whole, cpus, part):
        whole |= {"OMP_NUM_THREADS": str(threads), contract.ENV_THREADS: str(threads)}
    return whole


def threads_told(env: Mapping[str, str], cpus: float, part: float) -> int:
    """Return with how many threads an attempt computes as far as its environment tells, 0 where it doesn't.

    It is the number that the user chose, the greatest of several, or ours.
    """
    chosen = [text for name in _THREADS if (text := env.get(name))]
    numbers = [int(text) for text in chosen if text.isascii() and text.isdecimal()]
    return max(numbers, default=0) if chosen else threads_of(env, cpus, part)


def threads_of(env: Mapping[str, str], cpus: float, part: float) -> int:
    """Return how many threads an attempt is told to compute with, see ``composed``; 0 where the user chose a number."""
    return 0 if any(env.get(name) for name in _THREADS) else max(1, math.floor(min(cpus, part)))
