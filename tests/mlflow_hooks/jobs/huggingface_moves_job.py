"""Trainings with Hugging Face's Trainer and what people put beside: early stopping, the best model, a plateau."""

import hashlib
import os

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

from pathlib import Path
from typing import Any

import torch
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from mlflow_hooks import trial
from mlflow_hooks.huggingface import TrialCallback
from tests.mlflow_hooks.jobs.attempts import CURVE, train_whole_and_moved
from tests.mlflow_hooks.jobs.signals import signal_in

torch.set_num_threads(1)
EVERY = 2
"""Steps between two evaluations."""


class Rows(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Rows of four numbers and their sum."""

    def __init__(self) -> None:
        self.x = torch.rand(64, 4, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[row], "labels": self.x[row].sum(0, keepdim=True)}


class Regression(torch.nn.Module):
    """Learns a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(4, 8)
        self.head = torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss and what was foretold."""
        found = self.head(self.body(x).relu())
        return {"loss": torch.nn.functional.mse_loss(found, labels), "logits": found}


class Own(TrainerCallback):  # type: ignore[misc]  # mypy does not follow into Transformers
    """Counts evaluations, thaws the body at step 6, and sends ourselves a signal if this is where one is wanted."""

    def __init__(self) -> None:
        self.evaluations = 0

    def on_step_begin(self, _args: object, state: Any, _control: object, **more: Any) -> None:  # noqa: ANN401 - as it is called
        """Freeze, thaw, or send the signal."""
        if state.global_step in {0, 6}:
            more["model"].body.requires_grad_(requires_grad=state.global_step == 6)
        signal_in(state.global_step)

    def on_evaluate(self, *_args: object, **_more: object) -> None:
        """Count."""
        self.evaluations += 1


def train(_kind: str) -> dict[str, Any]:
    """Train, and return what came out."""
    set_seed(3)
    with trial(checkpoint_every_s=0.0) as t:
        moving, own = TrialCallback(t), Own()
        arguments = TrainingArguments(
            output_dir=moving.output_dir,
            max_steps=40,
            per_device_train_batch_size=16,
            learning_rate=0.05,
            lr_scheduler_type="reduce_lr_on_plateau",
            lr_scheduler_kwargs={"patience": 2},
            eval_strategy="steps",
            eval_steps=EVERY,
            save_strategy="steps",
            save_steps=EVERY,
            save_total_limit=2,
            logging_steps=1,
            load_best_model_at_end=True,
            metric_for_best_model="score",
            greater_is_better=False,
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        stopping = EarlyStoppingCallback(early_stopping_patience=6)
        trainer: Any = Trainer(
            Regression(),
            arguments,
            train_dataset=Rows(),
            eval_dataset=Rows(),
            compute_metrics=lambda _: {"score": CURVE[trainer.state.global_step // EVERY - 1]},
            callbacks=[own, stopping, moving],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=moving.checkpoint)
    weights = b"".join(it.detach().numpy().tobytes() for it in trainer.model.state_dict().values())
    return {
        "steps": trainer.state.global_step,
        "best": Path(trainer.state.best_model_checkpoint).name,
        "best_score": trainer.state.best_metric,
        "lr": trainer.optimizer.param_groups[0]["lr"],
        "evaluations": own.evaluations,
        "trained": [it.requires_grad for it in trainer.model.parameters()],
        "weights": hashlib.sha256(weights).hexdigest(),
    }


train_whole_and_moved(train, {"plain": (3, 11, 17)})
