"""A PyTorch training that always writes a checkpoint of some megabytes, while it changes what it has just copied."""

import hashlib
import os
import sys

import torch

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.pytorch import torch_state
from tests.mlflow_hooks.jobs.beside import write_beside

write_beside()
STEPS, ROWS, WIDTH = int(os.environ["JOB_STEPS"]), 256, 512
torch.manual_seed(3)
data = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(1))
model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Dropout(0.2), torch.nn.Linear(WIDTH, WIDTH))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
noise = torch.Generator().manual_seed(7)
with trial(checkpoint_every_s=0) as t:
    t.track(torch_state(model, optimizer, noise))
    best = t.track_values(best=float("inf"))
    sys.stdout.write(f"start {t.next_step}\n")
    sys.stdout.flush()
    for step in t.steps(STEPS):
        batch = data[torch.from_numpy(batch_indices(ROWS, 16, 5, step))]
        loss = (model(batch + 0.1 * torch.randn(batch.shape, generator=noise)) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best.best = min(best.best, float(loss.detach()))
        t.log(loss=loss, best=best.best)
weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
sys.stdout.write(f"weights {hashlib.sha256(weights).hexdigest()}\n")
