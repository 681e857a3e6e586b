"""The trials in a study of Optuna's, with a process for each core: ``python -m benchmarks.own_machine.in_optuna``."""

import multiprocessing
import sys
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from benchmarks.own_machine.tools import Order
from benchmarks.own_machine.train import train

_STUDY = "trials"
_MOST = 1e6


def storage() -> JournalStorage:
    """Return the study's journal in this folder."""
    return JournalStorage(JournalFileBackend("journal"))


def work(total: int, common: tuple[str, ...]) -> None:
    """Train what waits in the study until none of its ``total`` trials does."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name=_STUDY, storage=storage())
    while (trial := study.ask()).number < total:
        found = {name: trial.suggest_float(name, 0, _MOST) for name in ("lr", "work")}
        study.tell(trial, train([*(f"--{name}={value}" for name, value in found.items()), *common]))
    study.tell(trial, state=optuna.trial.TrialState.FAIL)  # one more than there are


def main() -> None:
    """Train the trials of the order in this folder."""
    order = Order.read(Path())
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name=_STUDY, storage=storage())
    for words in order.lists:
        study.enqueue_trial({name: float(value) for name, value in (word[2:].split("=") for word in words)})
    total = len(order.lists)
    workers = [multiprocessing.Process(target=work, args=(total, order.common)) for _ in range(order.cores)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed := [worker.exitcode for worker in workers if worker.exitcode]:
        sys.exit(f"a process of the study ended with {failed[0]}")
    print(f"least loss: {study.best_value}")


if __name__ == "__main__":
    main()
