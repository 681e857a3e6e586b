"""A PyTorch training with what a GPU brings, where there is one: mixed precision, its random numbers, pinned memory."""

import hashlib
import os
import signal
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, CUDA's products are not the same twice

import torch

from mlflow_hooks import trial
from mlflow_hooks.batches import batch_indices
from mlflow_hooks.pytorch import torch_state
from tests.mlflow_hooks.jobs.beside import write_beside

write_beside()
STEPS, ROWS = int(os.environ.get("JOB_STEPS", "60")), 512
signal_at, _, signal_name = os.environ.get("JOB_SIGNAL", "-1:SIGTERM").partition(":")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
half = torch.float16 if device.type == "cuda" else torch.bfloat16
torch.use_deterministic_algorithms(True)  # noqa: FBT003 - PyTorch names no such argument
torch.manual_seed(3)
data = torch.randn(ROWS, 32, generator=torch.Generator().manual_seed(1))
noise = torch.Generator(device=device).manual_seed(7)
if device.type == "cuda":
    data = data.pin_memory()
model: torch.nn.Module = torch.nn.Sequential(
    torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 1)
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=device.type == "cuda")
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
# A scale this high overflows in the first steps, so that it is still moving when the training is broken off.
scaler = torch.amp.GradScaler(device.type, init_scale=2.0**40, growth_interval=5, enabled=device.type == "cuda")
forward = torch.compile(model) if os.environ.get("JOB_COMPILE") else model
with trial(checkpoint_every_s=float(os.environ.get("JOB_EVERY_S", "0.1"))) as t:
    t.track(torch_state(model, optimizer, scheduler, scaler, noise))
    sys.stdout.write(f"device {device.type}\nstart {t.next_step}\n")
    for step in t.steps(STEPS):
        if step == int(signal_at):
            os.kill(os.getpid(), signal.Signals[signal_name])
        batch = data[torch.from_numpy(batch_indices(ROWS, 64, 5, step))].to(device, non_blocking=True)
        target = batch.sum(1, keepdim=True)
        shaken = batch + 0.1 * torch.randn(batch.shape, generator=noise, device=device) + 0.1 * torch.randn_like(batch)
        with torch.autocast(device.type, dtype=half):
            loss = (forward(shaken).float() - target).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        t.log(loss=loss, scale=scaler.get_scale() if scaler.is_enabled() else 1.0)
weights = b"".join(value.cpu().numpy().tobytes() for value in model.state_dict().values())
sys.stdout.write(f"weights {hashlib.sha256(weights).hexdigest()}\n")
