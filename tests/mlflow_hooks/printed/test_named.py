"""Metrics in what training scripts print."""

import math
import time
from pathlib import Path

import pytest

from mlflow_hooks.printed.lines import lines_of
from mlflow_hooks.printed.named import NamedReader, printed_metrics


def values_of(metric: str, line: str) -> list[float]:
    return [value for _, value in NamedReader(metric, alone=True).read(line).values]


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
        ("Final loss: 0.5.", {"Final loss": 0.5}),
        ("took: 0.31s", {}),
        ("epoch: 3", {}),
        ("version: 1.2.3", {}),
        ("at 10:30:05 something happened", {}),
        ("epoch 3 loss 0.5", {"loss": 0.5}),
        ("loss = 0.5; acc = 0.9", {"loss": 0.5, "acc": 0.9}),
        ("map[acc:0.9 loss:0.5]", {"acc": 0.9, "loss": 0.5}),
        ("Metrics { loss: 0.5, acc: 0.9 }", {"loss": 0.5, "acc": 0.9}),
        ("loss => 0.5", {"loss": 0.5}),
        (" loss =  1.0D-3", {"loss": 0.001}),
        ("loss: tf.Tensor(0.9, shape=(), dtype=float32)", {"loss": 0.9}),
        ("loss: array([0.1, 0.2])", {}),
        ("loss=[0.1, 0.2]", {}),
        ("loss 0.5 ± 0.1", {"loss": 0.5}),
        ("acc 93.1 %", {"acc": 93.1}),
        ("Verlust: \u22120.5", {"Verlust": -0.5}),
        ("train_loss_step=0.5, train_loss_epoch=0.4", {"train_loss_step": 0.5, "train_loss_epoch": 0.4}),
        ("Train Epoch: 3, global_step: 7, Progress: 40%", {}),
        ("Epoch 3 finished in 12.5", {}),
        ("words/sec:  812, samples/s: 3", {}),
        ("--lr 0.1 --loss 3", {}),
        ("loss dropped by 0.5", {}),
        ("commit: 1e5f3a, host: 10.0.0.1, date: 2026-01-01", {}),
    ],
)
def test_names_and_values_are_found(line: str, found: dict[str, float]) -> None:
    assert dict(printed_metrics(line)) == found


def test_the_case_of_letters_does_not_matter_and_other_names_do() -> None:
    assert values_of("loss", "Loss: 0.5, val_loss: 0.7, Train loss: 0.9") == [0.5]


def test_a_progress_bar_prints_many_lines() -> None:
    assert lines_of(b"loss=2\rloss=1\r\ndone\n") == ["loss=2", "loss=1", "done", ""]


@pytest.mark.parametrize(
    "text", ["a " * 3000, "a-" * 3000, "a: " * 3000, "1" * 9000, " " * 9000, "x=1" * 3000, "123 " * 2000, "x=1 " * 2000]
)
def test_a_line_of_anything_is_read_in_no_time(text: str) -> None:
    began = time.process_time()
    list(printed_metrics(text))
    assert time.process_time() - began < 0.2


def public_programs() -> list[list[str]]:
    """Return metric, value, step and line of what well-known programs print; a table's head stands before its rows."""
    text = Path(__file__).with_name("public_programs.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t", 3) for line in text.splitlines() if not line.startswith("#")]
    return [[metric, value, step, line.replace("\\t", "\t")] for metric, value, step, line in rows]


def test_lines_of_public_programs_are_read_as_a_person_reads_them() -> None:
    reader = NamedReader()
    for metric, value, step, line in public_programs():
        read = reader.read(line)
        if metric == "-":
            assert read.values == (), line
        else:
            assert (dict(read.values)[metric], read.step) == (float(value), int(step) if step else None), line


@pytest.mark.parametrize("metric", sorted({metric for metric, *_ in public_programs()} - {"-"}))
def test_a_metric_that_is_named_is_read_from_the_same_lines(metric: str) -> None:
    reader = NamedReader(metric.upper(), alone=True)
    for name, value, step, line in public_programs():
        read = reader.read(line)
        if name == metric:
            assert ([value for _, value in read.values], read.step) == ([float(value)], int(step) if step else None), (
                line
            )


@pytest.mark.parametrize(
    "line",
    [
        "INFO saved the model with loss 0.5 after 10 s",
        "0.3 loss 0.5 bla",
        "loss 0.5 acc",
        "2026-01-01 10:00:00,123 worker 3 got loss 0.5 in 3 s",
        "so far (loss 0.5) and on",
        "loss [0.5]",
        "epoch [3] loss 0.5",
    ],
)
def test_of_a_metric_that_is_named_its_name_before_a_number_is_enough(line: str) -> None:
    assert values_of("loss", line) == [0.5]


OTHER_FORMS = ["1\u202f234,5", "1\u00a0234.5", "1 234.5", "1'234.5", "1.5 x 10^-3", "1.5\u00d710^-3"]
"""Values whose parts are other numbers."""


@pytest.mark.parametrize("said", ["0,81", "1,5e-3", "NA", "0.9s", "1.2.3", "None", "1_000", "12:30", *OTHER_FORMS])
def test_a_value_of_the_named_metric_that_is_no_number_is_told(said: str) -> None:
    read = NamedReader("loss").read(f"epoch 3 loss: {said}")
    assert (read.values, read.odd) == ((), (said,))


@pytest.mark.parametrize(
    "said", ["1 234", "12 345 678", "-1 234", "1 / 3", "3.2 e-1", "3 E-2", "*******", "~0.5", "$0.5", "-", "±0.5"]
)
def test_no_part_of_what_is_only_in_all_a_number_counts(said: str) -> None:
    read = NamedReader("loss", alone=True).read(f"epoch 3 loss: {said}")
    assert read.values == ()
    assert read.odd


@pytest.mark.parametrize("line", ["loss: 0.5 100", "loss: 1 2345", "loss 1.0 234", "loss: 12  345", "loss: 1234 567"])
def test_two_numbers_that_are_no_thousands_are_two(line: str) -> None:
    assert values_of("loss", line)


def test_a_step_beside_a_number_of_three_digits_is_the_step() -> None:
    assert NamedReader("loss").read("epoch 3 100 loss 0.5").step == 3


@pytest.mark.parametrize(
    "line",
    ["epoch 4 loss 9.9 (best: loss 0.01 at epoch 2)", "loss 9.9 | best: loss 0.3", "Min: loss = 0.2, loss = 9.9"],
)
def test_the_best_so_far_is_another_metric_also_before_a_colon(line: str) -> None:
    assert values_of("loss", line) == [9.9]


@pytest.mark.parametrize("sign", ["<=", ">=", "<", ">", "≤", "≥", "!="])
def test_what_a_metric_is_compared_with_is_no_value_of_it(sign: str) -> None:
    assert values_of("loss", f"Stopped early at loss {sign} 0.001") == []


@pytest.mark.parametrize("said", ["0.5 -> 0.4", "0.5->0.4", "0.5 → 0.4"])
def test_of_a_change_neither_value_is_guessed(said: str) -> None:
    read = NamedReader("loss").read(f"loss: {said}")
    assert read.values == ()
    assert read.odd


@pytest.mark.parametrize("other", ["best loss 0.1", "val_loss 0.1", "loss_scale 2", "Train loss: 0.9", "lossy 3"])
def test_another_name_that_ends_or_begins_so_is_another_metric(other: str) -> None:
    assert values_of("loss", other) == []


@pytest.mark.parametrize("line", ["epoch 3 loss NA", "loss  N/A", "epoch 3, loss None, acc 0.5"])
def test_a_missing_value_is_told_too(line: str) -> None:
    assert len(NamedReader("loss").read(line).odd) == 1


def test_a_name_with_a_word_that_leads_is_a_name() -> None:
    assert values_of("loss at end", "loss at end: 0.5") == [0.5]


def test_a_diverged_value_in_words_counts() -> None:
    assert values_of("loss", "epoch 3 loss Inf") == [math.inf]
    assert math.isnan(values_of("loss", "epoch 3 loss -nan(ind)")[0])


def test_rows_belong_to_the_newest_head_of_as_many_columns() -> None:
    lines = [
        "epoch  loss  acc",
        "Saving the model.  done",
        "1      0.5   0.9",
        "took 3  4",
        "2      0,4   0.8",
        "3      -     0.7",
    ]
    assert list(printed_metrics(*lines)) == [("loss", 0.5), ("acc", 0.9), ("acc", 0.8), ("acc", 0.7)]
