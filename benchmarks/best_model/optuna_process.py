"""A process of a study of Optuna's: ``python -m benchmarks.best_model.optuna_process FOLDER ORDER``."""

import json
import math
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks.best_model.joining import join_groups

if TYPE_CHECKING:
    import optuna


def main(folder: Path, order: dict[str, Any]) -> None:
    """Train configurations until none is left."""
    import optuna  # noqa: PLC0415 - its CPU time counts, so it comes after this process has joined its group
    import torch  # noqa: PLC0415
    from optuna.storages import JournalStorage  # noqa: PLC0415
    from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    job = import_module(order["job"])
    storage = JournalStorage(JournalFileBackend(str(folder / "journal")))
    pruner = optuna.pruners.SuccessiveHalvingPruner(**order["settings"])
    study = optuna.load_study(study_name=order["study"], storage=storage, pruner=pruner)
    while (trial := study.ask()).number < len(order["points"]):
        point = order["points"][trial.number]
        train(study, trial, folder, job, [*order["args"], *(f"--{name}={value}" for name, value in point.items())])
    study.tell(trial, state=optuna.trial.TrialState.FAIL)  # one more than there are configurations


def train(study: "optuna.Study", trial: "optuna.Trial", folder: Path, job: ModuleType, args: list[str]) -> None:
    """Train one configuration by the training of ``job``, and note when it reported what."""
    from optuna.trial import TrialState  # noqa: PLC0415 - as above

    from benchmarks.best_model.notes import Notes  # noqa: PLC0415

    given = job.parse(args)
    training, pruned, value = job.Training(given), False, math.nan
    notes = Notes(folder, trial.number)
    for step in range(given.steps):
        training.step(step)
        value = training.validate()["loss"]
        notes.report(value)
        trial.report(value, step)
        if pruned := trial.should_prune():
            break
    if pruned or math.isnan(value):
        study.tell(trial, state=TrialState.PRUNED)
    else:
        study.tell(trial, value)


if __name__ == "__main__":
    join_groups()
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
