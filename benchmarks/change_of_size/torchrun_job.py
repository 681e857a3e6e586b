"""The training of ``workflows.jobs.pytorch.elastic`` as PyTorch's own documentation has it survive a change of size.

Started by torchrun: rank 0 saves a snapshot after each step, and every restart goes on from there.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Adam

from mlflow_hooks.batches import batch_indices
from workflows.jobs.data import digit_images
from workflows.jobs.pytorch.elastic import DEFAULTS, DigitLayers
from workflows.jobs.pytorch.loop import tensors


def main(folder: Path, steps: int) -> None:
    """Train, and write when each step was done, by how many workers."""
    dist.init_process_group("gloo")
    rank, world, snapshot = dist.get_rank(), dist.get_world_size(), folder / "snapshot.pt"
    torch.manual_seed(DEFAULTS.seed)
    images, labels = tensors(digit_images().train)
    model = DigitLayers(DEFAULTS.hidden)
    optimizer, first = Adam(model.parameters(), lr=DEFAULTS.lr), 0
    if snapshot.exists():
        kept = torch.load(snapshot)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["step"] + 1
    parallel = DistributedDataParallel(model)
    for step in range(first, steps):
        for minibatch in range(step * DEFAULTS.work, (step + 1) * DEFAULTS.work):
            rows = batch_indices(len(images), DEFAULTS.batch_size, DEFAULTS.seed, minibatch)
            own = torch.from_numpy(np.array_split(rows, world)[rank])
            optimizer.zero_grad()
            # DDP takes the mean over workers; weighted so, that is the mean over the whole batch.
            losses = nn.functional.cross_entropy(parallel(images[own]), labels[own], reduction="sum")
            (losses * world / len(rows)).backward()  # type: ignore[no-untyped-call]  # PyTorch's
            optimizer.step()
        if rank == 0:
            beside = snapshot.with_suffix(".new")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, beside)
            beside.replace(snapshot)
            with (folder / "steps").open("a") as file:
                file.write(f"{step} {time.time()} {world}\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(os.environ["JOB_FOLDER"]), int(sys.argv[1]))
