"""What stands in for what a pod would have: folders for volumes, files for secrets, and a folder of the trial's own."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from controllers.core.errors import SpeconError
from controllers.worlds.local import mps
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract

CUDA: Final = "CUDA_VISIBLE_DEVICES"
VOLUMES: Final = "volumes"
"""Folder of a run for the volumes of its workflow."""
FILES: Final = "files"
"""Folder of a run with a folder for each trial to write into."""
WORK: Final = "work"
"""Folder of a run with a working folder for each trial that has its own."""


def stood_in(step: PodStep, run: Path, name: str, gpus: Sequence[str] | None) -> PodStep:
    """Return ``step`` as this machine can run it; the folders that it names are made.

    Args:
        step: of a trial, or another one.
        run: the folder of the run.
        name: the trial's, safe as a file name.
        gpus: which it may use; None where nobody counts them.

    Raises:
        SpeconError: the file of a secret cannot be read.
    """
    own = run / FILES / name
    folders = _folders(step, run, name)
    for folder in (own, *folders.values()):
        folder.mkdir(parents=True, exist_ok=True)
    env = {contract.ENV_TRIAL_FOLDER: str(own)}
    for key, value in step.env.items():
        if key != contract.ENV_TRIAL_FOLDER:
            # A variable may name those before it, as in Kubernetes.
            (text,) = replace(step, env=env).words((value,))
            env[key] = _with_folders(text, folders)
    env |= {key: _secret(key) for key in step.secrets if key not in os.environ}
    if gpus is not None:
        env[CUDA] = ",".join(gpus)
        if step.gpu_part < 1:
            env.setdefault(mps.THREADS, mps.percentage_of(step.gpu_part))
    return replace(
        step,
        command=tuple(_with_folders(word, folders) for word in step.command),
        args=tuple(_with_folders(word, folders) for word in step.args),
        env=env,
    )


def output_files(step: PodStep, run: Path, name: str) -> dict[str, Path]:
    """Return where this machine has the files of the output parameters of ``step``; see ``stood_in``."""
    folders = _folders(step, run, name)
    return {output: Path(_with_folders(file.path, folders)) for output, file in step.outputs.items()}


def _folders(step: PodStep, run: Path, name: str) -> dict[str, Path]:
    return {
        mount.path: _folder(mount.folder, run, mount.name, mount.inside, name if mount.own else "")
        for mount in step.mounts
    }


def _folder(given: str, run: Path, volume: str, inside: str, trial: str) -> Path:
    return Path(given) if given else run / VOLUMES / volume / trial / inside


def _with_folders(text: str, folders: Mapping[str, Path]) -> str:
    """Return ``text`` with each path of a pod that begins a word in it replaced by the folder that stands in for it."""
    if not folders:
        return text
    paths = "|".join(re.escape(path.rstrip("/")) for path in folders)
    by_path = {path.rstrip("/"): str(folder) for path, folder in folders.items()}
    return re.sub(rf"(?<![\w./-])({paths})(?=/|$|[^\w.-])", lambda match: by_path[match[1]], text)


def _secret(name: str) -> str:
    file = os.environ[f"{name}_FILE"]
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, ValueError) as error:
        message = f"{name}_FILE names {file}, which cannot be read as text: {error}"
        raise SpeconError(message) from error
