"""Trainings with Lightning and what people put beside: early stopping, the best model, a plateau, averages, thawing."""

import hashlib
import logging
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import (
    EarlyStopping,
    EMAWeightAveraging,
    ModelCheckpoint,
    StochasticWeightAveraging,
)
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

from mlflow_hooks import trial
from mlflow_hooks.lightning import TrialCallback
from tests.mlflow_hooks.jobs.attempts import CURVE, train_whole_and_moved
from tests.mlflow_hooks.jobs.signals import signal_in

LOGS = Path(tempfile.mkdtemp())
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Regression(LightningModule):  # type: ignore[misc]  # mypy does not follow into Lightning
    """Learns a sum; ``loss`` is what the curve says."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(4, 8)
        self.head = torch.nn.Linear(8, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        """Return the loss, and send ourselves a signal if this is where one is wanted."""
        if index == 1:
            signal_in(self.current_epoch)
        return torch.nn.functional.mse_loss(self.head(self.body(batch[0]).relu()), batch[1])

    def validation_step(self, _batch: list[torch.Tensor]) -> None:
        """Log the curve."""
        self.log("loss", CURVE[self.current_epoch])

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - as Lightning takes it
        """Return SGD, with a scheduler that goes by the curve where no other callback replaces it."""
        optimizer = torch.optim.SGD(self.head.parameters(), lr=0.05, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
        plateau = {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "loss"}}
        return plateau if os.environ["SPECON_TRIAL_ID"].startswith("plain") else optimizer


class Thaw(Callback):  # type: ignore[misc]  # mypy does not follow into Lightning
    """Trains the body, too, from epoch 3 on."""

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Begin with it where it is time to."""
        if trainer.current_epoch == 0:
            module.body.requires_grad_(requires_grad=False)
        if trainer.current_epoch == 3:
            module.body.requires_grad_(requires_grad=True)
            trainer.optimizers[0].add_param_group({"params": module.body.parameters(), "lr": 0.01})


def weights_of(module: torch.nn.Module) -> str:
    """Return a digest of all weights."""
    return hashlib.sha256(b"".join(it.detach().numpy().tobytes() for it in module.state_dict().values())).hexdigest()


def train(kind: str) -> dict[str, Any]:
    """Train with the callbacks of ``kind``, and return what came out."""
    beside: dict[str, list[Any]] = {
        "plain": [EarlyStopping("loss", patience=6), ModelCheckpoint(monitor="loss", save_top_k=1), Thaw()],
        "swa": [StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=4, annealing_epochs=2)],
        "ema": [EMAWeightAveraging(decay=0.9)],
    }
    seed_everything(1, workers=True)
    x = torch.randn(48, 4, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(x, x.sum(1, keepdim=True))
    with trial(checkpoint_every_s=0.0) as t:
        moving = TrialCallback(t)
        trainer = Trainer(
            max_epochs=12,
            accelerator="cpu",
            callbacks=[moving, *beside[kind]],
            logger=CSVLogger(LOGS / t.settings.trial_id) if kind == "plain" else False,
            enable_checkpointing=kind == "plain",
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Regression()
        batches = DataLoader(data, batch_size=12, shuffle=True)
        trainer.fit(model, batches, DataLoader(data, batch_size=48), ckpt_path=moving.ckpt_path)
    found = {"epochs": trainer.current_epoch, "weights": weights_of(model)}
    if kind == "plain":
        best: Any = trainer.checkpoint_callback
        found |= {
            "lr": trainer.optimizers[0].param_groups[0]["lr"],
            "best": str(Path(best.best_model_path).relative_to(LOGS / t.settings.trial_id)),
            "best_score": float(best.best_model_score),
            "trained": [it.requires_grad for it in model.parameters()],
        }
        model.load_state_dict(torch.load(best.best_model_path, weights_only=True)["state_dict"])
        found["weights_of_best"] = weights_of(model)
    return found


train_whole_and_moved(train, {"plain": (2, 5, 8), "swa": (2, 6), "ema": (2, 6)})
