"""What a trial is told by its environment (``contract.py``) and by its script."""

import math
import os
import re
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlflow_hooks import contract
from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.no_links import link_in
from mlflow_hooks.system import start_time

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_NUMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_BY_HAND_ROOT = Path(".specon/by-hand")
_GRACE_S = 30.0
"""What Kubernetes gives a pod that asks for nothing else."""


@dataclass(frozen=True, slots=True)
class AttemptSettings:
    """One attempt of one trial, as one of its workers sees it.

    ``store`` is the address of the store of objects that keeps the folder, empty without one. ``leave_file`` is the
    file that asks an attempt to leave, empty outside of a pod. ``grace_s`` are the seconds that there are to leave.
    ``lineage`` are the numbers of the trials whose checkpoints the trial goes on from. ``by_hand`` tells that no sweep
    started the script, ``launched`` that its starter named the attempt.
    """

    trial_id: str
    sweep_id: str | None
    attempt: str
    params: dict[str, Any]
    objective: str | None
    direction: str | None
    folder: Path
    store: str
    grace_s: float
    parent_run_id: str | None
    experiment: str
    by_hand: bool
    flush_s: float
    launched: bool = False
    leave_file: str = ""
    rank: int = 0
    workers: int = 1
    workers_max: int = 1
    lineage: tuple[str, ...] = ()

    @property
    def run_name(self) -> str:
        """Name of the MLflow run: the last part of the trial's dotted id."""
        return self.trial_id.rsplit(".", 1)[-1] or self.trial_id


def read_settings(
    params: Mapping[str, Any] | None, objective: str | None, direction: str | None, flush_s: float
) -> AttemptSettings:
    """Join what the environment says with the script's own defaults; the environment wins.

    Raises:
        BadEnvironmentError: naming the variable and the value that cannot be used.
    """
    env = os.environ
    given = env.get(contract.ENV_TRIAL_ID)
    if given and not _SAFE_ID.fullmatch(given):
        message = f"{contract.ENV_TRIAL_ID} must be a plain file name of letters, digits, '.', '_', '-': {given!r}"
        raise BadEnvironmentError(message)
    script = re.sub(r"[^A-Za-z0-9_-]", "-", Path(sys.argv[0]).stem).strip("-_") or "script"
    rank, workers, workers_max = _place()
    if workers > 1:
        launch = _launch()
        trial_id = given or f"{script}-{launch}"
        attempt = env.get(contract.ENV_ATTEMPT) or f"{launch}-{env.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    else:
        trial_id = given or f"{script}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:4]}"
        attempt = env.get(contract.ENV_ATTEMPT) or uuid.uuid4().hex
    direction = env.get(contract.ENV_DIRECTION) or direction
    if direction not in {None, "minimize", "maximize"}:
        message = f"the direction must be 'minimize' or 'maximize', not {direction!r}"
        raise BadEnvironmentError(message)
    folder = _own_folder(env.get(contract.ENV_STATE_ROOT), trial_id)
    return AttemptSettings(
        trial_id=trial_id,
        sweep_id=env.get(contract.ENV_SWEEP_ID),
        attempt=attempt,
        params={**(params or {}), **_params(env.get(contract.ENV_PARAMS))},
        objective=env.get(contract.ENV_OBJECTIVE) or objective,
        direction=direction,
        store=env.get(contract.ENV_STATE_STORE, ""),
        grace_s=_seconds(contract.ENV_GRACE, _GRACE_S),
        folder=folder,
        parent_run_id=env.get(contract.ENV_PARENT_RUN_ID) or None,
        experiment=env.get("MLFLOW_EXPERIMENT_NAME") or "Default",
        by_hand=not given,
        flush_s=_seconds(contract.ENV_FLUSH, flush_s),
        launched=bool(env.get(contract.ENV_ATTEMPT)),
        leave_file=env.get(contract.ENV_LEAVE_FILE, ""),
        rank=rank,
        workers=workers,
        workers_max=workers_max,
        lineage=_lineage(env.get(contract.ENV_LINEAGE, "") if given else ""),
    )


def _own_folder(root: str | None, trial_id: str) -> Path:
    """Return the trial's folder, in which no link leads elsewhere: others may write where all trials have theirs."""
    folder = (Path(root) if root else _BY_HAND_ROOT).absolute() / trial_id
    if (link := link_in(folder)) is not None:
        message = f"{link} is a symbolic link, and none is followed there: remove it"
        raise BadEnvironmentError(message)
    return folder


def _place() -> tuple[int, int, int]:
    """Return this worker's rank, how many workers there are and how many there may be."""
    workers = _whole(contract.ENV_WORLD_SIZE, default=1, least=1)
    rank = _whole(contract.ENV_RANK, default=0, least=0)
    most = _whole(contract.ENV_WORKERS_MAX, default=workers, least=1)
    if workers > 1 and not os.environ.get(contract.ENV_RANK):
        message = f"{contract.ENV_RANK} is not set, but {contract.ENV_WORLD_SIZE} is {workers}"
        raise BadEnvironmentError(message)
    if rank >= workers or workers > most:
        names = f"{contract.ENV_RANK}, {contract.ENV_WORLD_SIZE} and {contract.ENV_WORKERS_MAX}"
        message = f"{names} must grow from 0, with the rank below the others, not {rank}, {workers}, {most}"
        raise BadEnvironmentError(message)
    return rank, workers, most


def _seconds(name: str, default: float) -> float:
    text = os.environ.get(name)
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        message = f"{name} must be a number of seconds from 0, not {text!r}"
        raise BadEnvironmentError(message)
    return seconds


def _whole(name: str, default: int, least: int) -> int:
    text = os.environ.get(name)
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or int(text) < least:
        message = f"{name} must be a whole number from {least}, not {text!r}"
        raise BadEnvironmentError(message)
    return int(text)


def _launch() -> str:
    """Return a name for the launch of this gang that is the same on all its workers.

    Raises:
        BadEnvironmentError: it was not torchrun on this machine that started them, so the environment must name it.
    """
    env = os.environ
    if "TORCHELASTIC_RUN_ID" in env and env.get("LOCAL_WORLD_SIZE") == env.get(contract.ENV_WORLD_SIZE):
        parent = os.getppid()
        return f"torchrun-{parent}-{start_time(parent) or 0}"
    needed = (contract.ENV_TRIAL_ID, contract.ENV_ATTEMPT, contract.ENV_STATE_ROOT)
    missing = [name for name in needed if not env.get(name)]
    if missing:
        message = (
            f"{contract.ENV_WORLD_SIZE} is {env.get(contract.ENV_WORLD_SIZE)}, but {', '.join(missing)} not set: "
            "workers on several machines find each other by them, so they must be the same for all"
        )
        raise BadEnvironmentError(message)
    return env[contract.ENV_ATTEMPT]


def _lineage(text: str) -> tuple[str, ...]:
    try:
        given = parsed(text) if text else []
    except ValueError:
        given = None
    if isinstance(given, list) and all(isinstance(one, str) and _NUMBER.fullmatch(one) for one in given):
        return tuple(given)
    message = f"{contract.ENV_LINEAGE} must be a JSON list of trials' numbers: {text!r}"
    raise BadEnvironmentError(message)


def _params(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    try:
        params = parsed(text)
    except ValueError as error:
        message = f"{contract.ENV_PARAMS} is not JSON ({error}): {text!r}"
        raise BadEnvironmentError(message) from error
    if not isinstance(params, dict):
        message = f"{contract.ENV_PARAMS} must be a JSON object: {text!r}"
        raise BadEnvironmentError(message)
    return params
