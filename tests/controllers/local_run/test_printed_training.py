"""What a script prints after its restart tells whether it went on, whatever its lines look like."""

from collections.abc import Sequence

import pytest

from controllers.local_run.printed_training import PrintedTraining


def lines(*forms: str, epochs: Sequence[int]) -> list[str]:
    return [form.format(epoch) for epoch in epochs for form in forms]


@pytest.mark.parametrize(
    ("forms", "first", "second", "begun_again"),
    [
        (("epoch {0} loss 0.{0}",), range(6), range(6, 12), 0),
        (("epoch {0} loss 0.{0}",), range(6), range(4, 12), 0),
        (("epoch {0} loss 0.{0}",), range(6), range(12), 1),
        (("epoch {0} loss 0.{0}",), range(1, 7), range(1, 12), 1),
        (("epoch {0} loss 0.{0}",), range(1), range(1, 4), 0),
        (("step {}/100: loss=0.5",), range(10, 60, 10), range(60, 100, 10), 0),
        (("step {}/100: loss=0.5",), range(10, 60, 10), range(10, 100, 10), 1),
        (("[{}] train-loss:0.5 loss:0.4",), range(6), range(6, 12), 0),
        (("Epoch {}/24", "100/100 - 2s - loss: 0.5"), range(1, 7), range(7, 12), 0),
        (("Epoch {}/24", "100/100 - 2s - loss: 0.5"), range(1, 7), range(4, 12), 0),
        (("Epoch {}/24", "100/100 - 2s - loss: 0.5"), range(1, 7), range(1, 12), 1),
        (("Epoch {}/24", "step 1 loss 0.6", "step 2 loss 0.5"), range(1, 7), range(7, 12), 0),
        (("Epoch {}/24", "step 1 loss 0.6", "step 2 loss 0.5"), range(1, 7), range(1, 12), 1),
        (("loss: 0.{}",), range(6), range(6, 12), 1),
        (("a word of {}",), range(6), range(6), 0),
    ],
)
def test_an_attempt_that_tells_later_steps_goes_on(
    forms: Sequence[str], first: Sequence[int], second: Sequence[int], begun_again: int
) -> None:
    training = PrintedTraining("loss", min)
    for line in lines(*forms, epochs=first):
        training.take(line, lambda: 1)
    training.attempt(700)
    for line in lines(*forms, epochs=second):
        training.take(line, lambda: 2)
    in_each = sum("loss" in form for form in forms)
    epochs = {*second} if begun_again else {*first, *second}
    assert training.begun_again == begun_again
    assert len(training.points) == in_each * len(epochs)
    assert training.began == (700 if begun_again else 0)
    steps = [point.step for point in training.points]
    assert steps == sorted(steps)


def test_an_attempt_that_printed_no_value_changes_nothing() -> None:
    training = PrintedTraining("loss", min)
    for attempt, epochs in enumerate(((0, 1, 2), (), (3, 4), (0, 1))):
        training.attempt(100 * attempt)
        for line in lines("epoch {} loss 0.5", epochs=epochs):
            training.take(line, lambda: 1)
    assert (training.begun_again, training.began, [point.step for point in training.points]) == (1, 300, [0, 1])
