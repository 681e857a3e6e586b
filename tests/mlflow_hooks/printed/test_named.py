"""Metrics in what training scripts print."""

import time

import pytest

from mlflow_hooks.printed.named import lines_of, printed_metrics, values_of


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("loss: 0.31", {"loss": 0.31}),
        ("loss=0.31", {"loss": 0.31}),
        ("val_loss 0.31", {"val_loss": 0.31}),
        ("val/loss = 3e-4", {"val/loss": 0.0003}),
        ("Epoch 3 loss: 0.31 acc: 0.93", {"loss": 0.31, "acc": 0.93}),
        ("Epoch 1/10, Loss: 0.31", {"Loss": 0.31}),
        ("1/10 - 0s 3ms/step - accuracy: 0.9 - loss: 0.31", {"accuracy": 0.9, "loss": 0.31}),
        ("step 10: train loss 1.9, val loss 2.0", {"train loss": 1.9, "val loss": 2.0}),
        ("2026-01-01 10:00:00,123 INFO loss: 0.3", {"loss": 0.3}),
        ("INFO:root:loss: 0.3", {"loss": 0.3}),
        ("{'loss': 0.31, 'grad_norm': 1.2e-3, 'epoch': 1.0}", {"loss": 0.31, "grad_norm": 0.0012}),
        ("[100]\ttrain-rmse:0.31\ttest-rmse:0.4", {"train-rmse": 0.31, "test-rmse": 0.4}),
        ("Average loss: 0.0287, Accuracy: 9901/10000 (99%)", {"Average loss": 0.0287}),
        ("acc: 93.1%", {"acc": 93.1}),
        ("\x1b[32mloss: \x1b[1m0.5\x1b[0m", {"loss": 0.5}),
        ("Final loss: 0.5.", {"Final loss": 0.5}),
        ("took: 0.31s", {}),
        ("epoch: 3", {}),
        ("version: 1.2.3", {}),
        ("at 10:30:05 something happened", {}),
    ],
)
def test_names_and_values_are_found(line: str, found: dict[str, float]) -> None:
    assert dict(printed_metrics(line)) == found


def test_the_case_of_letters_does_not_matter_and_other_names_do() -> None:
    assert list(values_of("loss", "Loss: 0.5, val_loss: 0.7, Train loss: 0.9")) == [0.5]


def test_a_progress_bar_prints_many_lines() -> None:
    assert lines_of("loss=2\rloss=1\r\ndone\n") == ["loss=2", "loss=1", "done", ""]


@pytest.mark.parametrize("text", ["a " * 3000, "a-" * 3000, "a: " * 3000, "1" * 9000, " " * 9000, "x=1" * 3000])
def test_a_line_of_anything_is_read_in_no_time(text: str) -> None:
    began = time.process_time()
    list(printed_metrics(text))
    assert time.process_time() - began < 0.2
