"""The job whose hyperparameters people tune: it learns, it can be resumed, and it says what is wrong with a setting."""

from dataclasses import replace

import pytest

from workflows.jobs.pytorch.tuned import DATA, SCHEDULES, WARM_UP, Training, Tuned, main, parse

pytestmark = [pytest.mark.pytorch]


@pytest.mark.slow
@pytest.mark.parametrize("data", list(DATA))
def test_it_learns_something_of_each_set_of_data(data: str) -> None:
    training = Training(Tuned(data=data, lr=0.005, steps=4, work=60))
    before = training.validate()["loss"]
    for step in range(4):
        training.step(step)
    assert training.validate()["loss"] < before


def stepped(training: Training, step: int) -> dict[str, float]:
    training.step(step)
    return training.validate()


def test_the_same_settings_give_the_same_curve() -> None:
    tuned = Tuned(dropout=0.3, optimizer="sgd", schedule="one-cycle", steps=3, work=5)
    curves = []
    for _ in range(2):
        training = Training(tuned)
        curves.append([stepped(training, step) for step in range(3)])
    assert curves[0] == curves[1]
    other = Training(replace(tuned, seed=1))
    other.step(0)
    assert other.validate() != curves[0][0]


def test_schedules_go_where_their_names_say() -> None:
    assert [SCHEDULES["constant"](part) for part in (0.0, 0.5, 1.0)] == [1.0, 1.0, 1.0]
    assert [SCHEDULES["cosine"](part) for part in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.5, 0.0])
    assert SCHEDULES["one-cycle"](0.0) < 0.1
    assert SCHEDULES["one-cycle"](WARM_UP) == pytest.approx(1.0)
    assert SCHEDULES["one-cycle"](1.0) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("argument", "shown"),
    [("--lr=0", "--lr must be positive"), ("--data=mnist", "mnist"), ("--dropout=1", "dropout"), ("--width=x", "x")],
)
def test_a_setting_that_makes_no_sense_is_refused_with_its_value(
    argument: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([argument])
    assert shown in capsys.readouterr().err


def test_names_may_be_written_with_either_mark() -> None:
    assert parse(["--batch-size=16"]) == parse(["--batch_size=16"])
