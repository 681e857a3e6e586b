"""A Lightning training with dropout, shuffled batches and a scheduler that goes by the validation.

It can be told to signal itself in mid-epoch. ``JOB_LENGTH`` says whether epochs or batches end it. With
``JOB_CALLBACK=own`` it uses a callback as a user might write one, which only logs.
"""

import logging
import os
import sys
import warnings
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from torch.utils.data import DataLoader, TensorDataset

from mlflow_hooks import TrialSession, trial
from mlflow_hooks.lightning import TrialCallback
from tests.mlflow_hooks.jobs.beside import write_beside
from tests.mlflow_hooks.jobs.signals import forgotten, signal_in

EPOCHS, ROWS, BATCH = 8, 96, 16
write_beside()
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Regression(LightningModule):  # type: ignore[misc]  # mypy does not follow into Lightning
    """Learns a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1)
        )

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        """Return the loss, and send ourselves a signal if this is where one is wanted."""
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        if index == 2:
            signal_in(self.current_epoch)
        return loss

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        """Log the loss."""
        self.log("loss", torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self) -> dict[str, Any]:
        """Return Adam, and a scheduler whose state is lost where a checkpoint comes too early."""
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "loss"}}


class OnlyLogs(Callback):  # type: ignore[misc]  # mypy does not follow into Lightning
    """Logs, and leaves it to Lightning to answer SIGTERM."""

    def __init__(self, trial: TrialSession) -> None:
        super().__init__()
        self._trial = trial

    def on_train_epoch_end(self, trainer: Trainer, _module: LightningModule) -> None:
        """Log the epoch."""
        self._trial.log(trainer.callback_metrics, step=trainer.current_epoch)


seed_everything(3)
x = torch.rand(ROWS, 4, generator=torch.Generator().manual_seed(1))
data = TensorDataset(x, x.sum(1, keepdim=True))
length = {"max_steps": EPOCHS * ROWS // BATCH} if os.environ.get("JOB_LENGTH") == "batches" else {"max_epochs": EPOCHS}
with trial(checkpoint_every_s=0.0) as t:
    model = Regression()
    moving = None if os.environ.get("JOB_CALLBACK") == "own" else TrialCallback(t)
    trainer = Trainer(
        **length,
        accelerator="cpu",
        callbacks=[moving or OnlyLogs(t)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    sys.stdout.write(f"start {t.next_step}\n")
    trainer.fit(
        model,
        DataLoader(data, batch_size=BATCH, shuffle=True),
        DataLoader(data, batch_size=ROWS),
        ckpt_path=moving.ckpt_path if moving and not forgotten() else None,
    )
