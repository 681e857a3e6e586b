"""A PyTorch training with dropout, Adam and a scheduler; it can be told to signal itself in mid-step."""

import hashlib
import os
import signal
import sys
import time

import torch

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.pytorch import torch_state

STEPS, ROWS = int(os.environ.get("JOB_STEPS", "60")), 200
signal_at, _, signal_name = os.environ.get("JOB_SIGNAL", "-1:SIGTERM").partition(":")
torch.manual_seed(3)
data = torch.randn(ROWS, 8, generator=torch.Generator().manual_seed(1))
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.9)
with trial(checkpoint_every_s=float(os.environ.get("JOB_EVERY_S", "0.1"))) as t:
    t.track(torch_state(model, optimizer, scheduler))
    sys.stdout.write(f"start {t.next_step}\n")
    for step in t.steps(STEPS):
        if step == int(signal_at):
            os.kill(os.getpid(), signal.Signals[signal_name])
        batch = data[torch.from_numpy(batch_indices(ROWS, 16, 5, step))]
        loss = (model(batch + 0.1 * torch.randn(batch.shape)) - batch.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        t.log(loss=loss, rate=scheduler.get_last_lr()[0])
        time.sleep(float(os.environ.get("JOB_SLEEP_S", "0.01")))
weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
sys.stdout.write(f"weights {hashlib.sha256(weights).hexdigest()}\n")
