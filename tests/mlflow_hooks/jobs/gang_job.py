"""A small network that one or several workers train: by weighted shares of a batch, or exactly."""

import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional
from torch.optim import Adam

from mlflow_hooks import gang, trial
from mlflow_hooks.data_parallel import data_parallel
from mlflow_hooks.pytorch import torch_state
from mlflow_hooks.torch_gang import torch_gang
from tests.mlflow_hooks.jobs.signals import signal_in

STEPS, ROWS, BATCH = int(os.environ.get("JOB_STEPS", "30")), 102, 25  # a batch that no number of workers divides
EXACT, LAYER = "JOB_EXACT" in os.environ, os.environ.get("JOB_LAYER", "Identity")
vars(gang)["MEET_S"] = float(os.environ.get("JOB_MEET_S", "60"))
if "JOB_LATE" in os.environ:
    time.sleep(3600)
torch.set_num_threads(1)
torch.manual_seed(3)
inputs = torch.randn(ROWS, 8, generator=torch.Generator().manual_seed(1))
targets = (inputs.sum(1) > 0).long()
torch.manual_seed(int(os.environ.get("RANK", "0")))  # nobody has to seed: the weights of rank 0 count
layer: dict[str, Callable[[], torch.nn.Module]] = {
    "Identity": torch.nn.Identity,
    "BatchNorm1d": lambda: torch.nn.BatchNorm1d(16),
    "Dropout": torch.nn.Dropout,
}
model = torch.nn.Sequential(torch.nn.Linear(8, 16), layer[LAYER](), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = Adam(model.parameters(), lr=0.01)


def losses(model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    reduction = os.environ.get("JOB_REDUCTION", "none")
    return functional.cross_entropy(model(inputs[rows]), targets[rows], reduction=reduction)


with trial(checkpoint_every_s=float(os.environ.get("JOB_EVERY_S", "0.2"))) as t:
    if "JOB_ALONE" not in os.environ:
        torch_gang(t, silence_s=float(os.environ.get("JOB_SILENCE_S", "60")))
        training = data_parallel(t, model, rows=ROWS, batch_size=BATCH, seed=5, exact=EXACT)
    t.track(torch_state(model, optimizer))
    rank, workers = t.gang.rank, t.gang.workers
    for step in t.steps(STEPS):
        if rank == int(os.environ.get("JOB_RANK", "0")):
            signal_in(step)
        loss = training.backward(losses)
        optimizer.step()
        t.log(loss=loss, workers=workers)
        Path(t.settings.folder, f"{t.settings.attempt}-{rank}").write_text(str(step))
        time.sleep(float(os.environ.get("JOB_SLEEP_S", "0")))
if rank == 0:
    torch.save(model.state_dict(), t.settings.folder / "model.pt")
weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
sys.stdout.write(f"weights {hashlib.sha256(weights).hexdigest()}\ncpu {time.process_time()}\n")
