"""The journal of logged points: nothing missing, nothing doubled, whatever cuts it off."""

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_hooks.journal import POINTS, Journal, count_unsent, mark_sent, read_unsent, sent_bytes
from mlflow_hooks.metrics import Metrics
from mlflow_hooks.points import Point
from tests.property_examples import examples


def points(folder: Path) -> list[Point]:
    return list(filter(None, map(Point.decode, (folder / POINTS).read_bytes().splitlines())))


@settings(max_examples=examples(60))
@given(
    steps=st.integers(1, 25),
    every=st.integers(1, 6),
    kills=st.lists(st.tuples(st.integers(0, 24), st.integers(0, 90)), max_size=4),
)
def test_each_key_and_step_is_there_exactly_once_however_often_a_trial_is_killed(
    steps: int, every: int, kills: list[tuple[int, int]]
) -> None:
    """Kills happen after a step's log; the last write may have been cut off by any number of bytes."""
    with TemporaryDirectory() as name:
        folder, checkpoint, durable = Path(name), 0, 0
        for killed_after, cut in [*kills, (steps, 0)]:
            journal = Journal(folder)
            metrics = Metrics(journal, "loss", 0.0)
            for step in range(checkpoint, steps):
                metrics.log({"loss": 1 / (step + 1), "rate": step}, step)
                if step >= killed_after:
                    break
                if (step + 1) % every == 0:
                    checkpoint, durable = step + 1, (folder / POINTS).stat().st_size
            journal.close()
            if killed_after < steps:
                with (folder / POINTS).open("r+b") as file:
                    file.truncate(max(durable, file.seek(0, 2) - cut))
        logged = [(point.key, point.step, point.value) for point in points(folder)]
        for key, value in (("loss", lambda step: 1 / (step + 1)), ("rate", float)):
            assert [entry[1:] for entry in logged if entry[0] == key] == [(n, value(n)) for n in range(steps)]
        assert [entry for entry in logged if entry[0] == "specon.objective_first"] == [
            ("specon.objective_first", 0, 1.0)
        ]
        cpu = [step for key, step, _ in logged if key == "specon.cpu_seconds"]
        assert cpu[0] == 0
        assert cpu == sorted(set(cpu))


def test_cpu_seconds_come_often_at_first_and_seldom_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("mlflow_hooks.metrics.time.monotonic", lambda: now)
    journal = Journal(tmp_path)
    metrics = Metrics(journal, "loss", 0.0)
    for step in range(600):
        now = 0.1 * step
        metrics.log({"loss": 1.0}, step)
    journal.close()
    steps = [point.step for point in points(tmp_path) if point.key == "specon.cpu_seconds"]
    apart = [0.1 * (after - before) for before, after in itertools.pairwise(steps)]
    assert max(apart[:5]) <= 0.4
    assert min(apart[-5:]) >= 0.9
    assert max(apart) <= 1.2


def test_half_a_line_at_the_end_is_cut_off_and_logged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal(tmp_path)
    journal.append([Point("loss", 0.5, 0, 1), Point("loss", 0.25, 1, 2)])
    journal.close()
    whole = (tmp_path / POINTS).read_bytes()
    (tmp_path / POINTS).write_bytes(whole[:-7])
    again = Journal(tmp_path)
    assert "half a line" in capsys.readouterr().err
    assert again.high_water == {"loss": 0}
    again.append([Point("loss", 0.25, 1, 2)])
    assert (tmp_path / POINTS).read_bytes() == whole


def test_nan_and_infinity_come_back_as_they_were(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    Metrics(journal, "loss", 0.0).log({"loss": float("nan"), "norm": float("inf")}, 0)
    found = {point.key: repr(point.value) for point in points(tmp_path)}
    assert found["loss"] == "nan"
    assert found["norm"] == "inf"
    assert "specon.objective_first" not in found


def test_what_is_no_number_is_reported_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Metrics(Journal(tmp_path), None, 0.0).log({"loss": None, "rate": 1}, 0)
    assert [point.key for point in points(tmp_path)] == ["rate"]
    assert "loss=None" in capsys.readouterr().err


def test_a_write_that_fails_is_made_good_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("mlflow_hooks.journal.os.write", _full_disk)
        journal.append([Point("loss", 0.5, 0, 1)])
        journal.append([Point("loss", 0.4, 1, 2)])
    assert capsys.readouterr().err.count("cannot write metrics") == 1
    journal.append([Point("loss", 0.3, 2, 3)])
    assert [point.step for point in points(tmp_path)] == [0, 1, 2]


def _full_disk(_handle: int, _data: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_only_whole_acknowledged_lines_count_as_sent(tmp_path: Path) -> None:
    Journal(tmp_path).append([Point("loss", 0.5, step, 1) for step in range(5)])
    with (tmp_path / POINTS).open("ab") as file:
        file.write(b'{"key": "lo')
    found, offset = read_unsent(tmp_path, 3)
    assert [point.step for point in found] == [0, 1, 2]
    mark_sent(tmp_path, offset)
    found, _ = read_unsent(tmp_path, 3)
    assert [point.step for point in found] == [3, 4]
    assert count_unsent(tmp_path) == 2


@pytest.mark.parametrize("text", ["", "many", "-4", "99999999"])
def test_a_count_of_sent_bytes_that_cannot_be_right_means_that_all_is_sent_again(tmp_path: Path, text: str) -> None:
    Journal(tmp_path).append([Point("loss", 0.5, 0, 1)])
    (tmp_path / "points.sent").write_text(text)
    assert sent_bytes(tmp_path) == 0


def logged_again(folder: Path, *logged: tuple[int, float], finish: bool = True) -> None:
    """Let an attempt log these values of the loss at these steps, then finish the last step, or be killed in it."""
    journal = Journal(folder)
    metrics = Metrics(journal, "loss", 0.0)
    for step, value in logged:
        metrics.log({"loss": value}, step)
    if finish:
        metrics.finish_steps()
    journal.close()


def losses(folder: Path) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in points(folder) if point.key == "loss"]


KILLED = [(0, 9.0), (0, 8.0), (1, 7.0), (1, 6.0)]


@pytest.mark.parametrize(
    ("repeated", "all_of_it"),
    [
        # It was killed in the middle of step 1: what that logged is not doubled, and the rest is new.
        ([(1, 7.0), (1, 6.0), (1, 5.0)], [*KILLED, (1, 5.0)]),
        ([(0, 9.0), (0, 8.0), (1, 7.0), (1, 6.0), (1, 5.0), (2, 4.0)], [*KILLED, (1, 5.0), (2, 4.0)]),
        # The repeated step logs less than before, as one that logs now and then: its last value counts.
        ([(1, 3.0)], [*KILLED, (1, 3.0)]),
        ([(1, 3.0), (2, 2.0)], [*KILLED, (1, 3.0), (2, 2.0)]),
        # It was killed after the step: nothing of that is new.
        ([(1, 7.0), (1, 6.0)], KILLED),
        ([(1, 7.0), (1, 6.0), (2, 5.0)], [*KILLED, (2, 5.0)]),
        ([], KILLED),
        # A step that was gone beyond is whole, however often it is logged again.
        ([(0, 1.0), (0, 1.0), (0, 1.0), (2, 5.0)], [*KILLED, (2, 5.0)]),
        # A second phase counts from 0 again.
        ([(1, 7.0), (1, 6.0), (0, 3.0), (1, 2.0)], [*KILLED, (0, 3.0), (1, 2.0)]),
        ([(1, 3.0), (0, 2.0)], [*KILLED, (1, 3.0), (0, 2.0)]),
    ],
)
def test_what_a_repeated_step_logs_counts_from_where_an_earlier_attempt_was_killed(
    tmp_path: Path, repeated: list[tuple[int, float]], all_of_it: list[tuple[int, float]]
) -> None:
    logged_again(tmp_path, *KILLED, finish=False)
    logged_again(tmp_path, *repeated)
    assert losses(tmp_path) == all_of_it
    if all_of_it == sorted(all_of_it, key=lambda point: point[0]):
        logged_again(tmp_path, *repeated)
        assert losses(tmp_path) == all_of_it


def test_a_second_phase_that_is_resumed_goes_on_as_if_nobody_had_killed_it(tmp_path: Path) -> None:
    """The checkpoint says where the journal stood: what came before it is not logged again."""
    logged_again(tmp_path, *((step, 1.0) for step in range(10)))
    at_phase = (tmp_path / POINTS).stat().st_size
    logged_again(tmp_path, (0, 0.9), (1, 0.8))
    for offset, again in (
        (at_phase, [(0, 0.9), (1, 0.8), (2, 0.7)]),
        (at_phase, [(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.6)]),
    ):
        journal = Journal(tmp_path)
        journal.repeat_from(offset)
        metrics = Metrics(journal, "loss", 0.0)
        for step, value in again:
            metrics.log({"loss": value}, step)
        journal.close()
    assert losses(tmp_path)[10:] == [(0, 0.9), (1, 0.8), (2, 0.7), (3, 0.6)]


def test_a_second_phase_without_a_point_yet_is_logged_after_a_resume(tmp_path: Path) -> None:
    logged_again(tmp_path, *((step, 1.0) for step in range(10)))
    journal = Journal(tmp_path)
    journal.repeat_from((tmp_path / POINTS).stat().st_size)
    Metrics(journal, "loss", 0.0).log({"loss": 0.5}, 0)
    journal.close()
    assert losses(tmp_path)[-1] == (0, 0.5)


def test_steps_that_go_back_are_marked_once_and_no_other(tmp_path: Path) -> None:
    logged_again(tmp_path, *((step, 1.0) for step in range(5)))
    assert "specon.steps_back" not in {point.key for point in points(tmp_path)}
    logged_again(tmp_path, (4, 1.0), (0, 0.5), (1, 0.5), (0, 0.4))
    logged_again(tmp_path, (0, 0.4), (0, 0.3))
    assert [point.value for point in points(tmp_path) if point.key == "specon.steps_back"] == [4.0]


@pytest.mark.parametrize("clock", [[50, 50, 50, 50], [90, 20, 10, 30]])
def test_the_newest_value_at_a_step_or_after_a_way_back_has_the_greatest_time(
    tmp_path: Path, clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow takes the newest at a step by its time; another machine's clock may be late."""
    times = iter(clock)
    monkeypatch.setattr("mlflow_hooks.metrics.time.time", lambda: next(times))
    journal = Journal(tmp_path)
    for step, value in ((3, 0.9), (3, 0.8), (1, 0.7), (2, 0.6)):
        Metrics(journal, None, 0.0).log({"loss": value}, step)
    journal.close()
    stamps = [point.timestamp for point in points(tmp_path) if point.key == "loss"]
    assert stamps == sorted(stamps)
    assert stamps[0] < stamps[1] < stamps[2]
