"""A training with Hugging Face's Trainer: dropout, shuffled batches, an evaluation after each epoch."""

import os
import sys

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

from mlflow_hooks import trial
from mlflow_hooks.huggingface import TrialCallback
from tests.mlflow_hooks.jobs.beside import write_beside
from tests.mlflow_hooks.jobs.signals import forgotten, signal_in

EPOCHS, ROWS, BATCH = 4, 96, 16
write_beside()


class Sums(Dataset[dict[str, torch.Tensor]]):
    """Rows of four numbers and their sum."""

    def __init__(self) -> None:
        self.x = torch.rand(ROWS, 4, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[row], "labels": self.x[row].sum(0, keepdim=True)}


class Regression(torch.nn.Module):
    """Learns a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1)
        )

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss and what was foretold, and send ourselves a signal if this is where one is wanted."""
        if self.training:
            signal_in(t.next_step)
        found = self.layers(x)
        return {"loss": torch.nn.functional.mse_loss(found, labels), "logits": found}


set_seed(3)
with trial(checkpoint_every_s=0.0) as t:
    callback = TrialCallback(t)
    arguments = TrainingArguments(
        output_dir=callback.output_dir,
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=ROWS,
        learning_rate=0.05,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(Regression(), arguments, train_dataset=Sums(), eval_dataset=Sums(), callbacks=[callback])
    sys.stdout.write(f"start {t.next_step}\n")
    trainer.train(resume_from_checkpoint=None if forgotten() else callback.checkpoint)
