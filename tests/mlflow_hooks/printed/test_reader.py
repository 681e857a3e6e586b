"""Values in what a program prints: steps, pieces of lines, floods, and bytes of every kind."""

import math
import time
from collections.abc import Mapping
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_hooks.bounds import LONGEST_LINE, MOST_VALUES
from mlflow_hooks.printed.form import MOST_NAMES, PrintedForm, compile_pattern
from mlflow_hooks.printed.reader import BURST, PER_SECOND, PrintedReader

LOSS = PrintedForm(patterns=(r"epoch (?P<step>\S+): loss=(?P<loss>\S+)(?: acc=(?P<acc>\S+))?",))
JSON = PrintedForm(keys=("loss", "eval.acc"), step="epoch")


def reader(form: PrintedForm) -> PrintedReader:
    return PrintedReader(form, "loss", lambda: 0.0)


def read(form: PrintedForm, printed: bytes) -> list[tuple[int | None, Mapping[str, object]]]:
    one = reader(form)
    return [(line.step, dict(line.values)) for line in [*one.read(1, printed), *one.last()]]


def test_a_line_tells_several_metrics_and_their_step() -> None:
    printed = b"epoch 3: loss=0.31 acc=0.9\nother words\nepoch 4: loss=2e-3\n"
    assert read(LOSS, printed) == [(3, {"loss": 0.31, "acc": 0.9}), (4, {"loss": 0.002})]


def test_several_matches_of_a_line_count_each() -> None:
    assert read(PrintedForm(patterns=(r"loss=(?P<loss>\S+)",)), b"loss=1 loss=2\n") == [
        (None, {"loss": 1.0}),
        (None, {"loss": 2.0}),
    ]


def test_a_line_with_the_step_alone_tells_it_for_those_that_follow() -> None:
    form = PrintedForm(patterns=(r"^Epoch (?P<epoch>\d+)/", r" - val_loss: (?P<loss>\S+)"))
    printed = b"Epoch 1/2\n9/9 - val_loss: 0.5\nEpoch 2/2\n9/9 - val_loss: 0.25\n"
    assert read(form, printed) == [(1, {"loss": 0.5}), (2, {"loss": 0.25})]


def test_json_is_found_among_other_words_and_within_objects() -> None:
    printed = b"""INFO {"epoch": 3, "loss": 0.5, "eval": {"acc": "0.9"}, "other": 1} took 3 s
{"epoch": 4.0, "eval.acc": 1}
{"loss": 1, "epoch": "5"}
"""
    assert read(JSON, printed) == [
        (3, {"loss": 0.5, "eval.acc": 0.9}),
        (4, {"eval.acc": 1}),
        (5, {"loss": 1}),
    ]


def test_nan_and_infinities_are_read_as_mlflow_has_them() -> None:
    one = reader(PrintedForm(patterns=(r"loss=(?P<loss>\S+)",)))
    values = [line.values["loss"] for line in one.read(1, b"loss=nan\nloss=-inf\nloss=Infinity\n")]
    assert math.isnan(values[0])  # type: ignore[arg-type]  # a number, as the next line shows
    assert values[1:] == [-math.inf, math.inf]
    assert read(JSON, b'{"loss": Infinity, "epoch": 1}\n') == [(1, {"loss": math.inf})]
    assert read(JSON, b'{"loss": -inf, "epoch": 1, "eval": {"of": "nan,", "acc":nan}}\n')[0][1]["loss"] == -math.inf


def test_what_ends_a_sentence_is_no_part_of_the_number() -> None:
    form = PrintedForm(patterns=(r"val_loss=(?P<loss>[-+0-9.e]+)",))
    assert read(form, b"it is val_loss=0.31.\n") == [(None, {"loss": 0.31})]


@pytest.mark.parametrize("said", ["oops", "1_000", "0,5", "--", "1,5e-3", "NA"])
def test_what_is_no_number_counts_as_none_and_is_noted_once_with_its_line(said: str) -> None:
    one = reader(LOSS)
    assert one.read(1, f"epoch 1: loss={said}\nepoch 2: loss={said}\n".encode()) == []
    assert one.notes == [f"loss={said!r} is no number and counts as none, in the line 'epoch 1: loss={said}'"]


@pytest.mark.parametrize("form", [PrintedForm(patterns=(r"loss: (?P<loss>.*)$",)), PrintedForm()])
def test_patterns_and_names_take_the_same_numbers(form: PrintedForm) -> None:
    said = [
        "1,234.5",
        "Inf",
        "+Inf",
        "-inf",
        "tensor(0.9, device='cuda:0')",
        "\x1b[36m0.5\x1b[0m",
        "0,81",
        "0.9s",
        "1.0D-3",
    ]
    values = [values["loss"] for _, values in read(form, "".join(f"loss: {one}\n" for one in said).encode())]
    assert values == [1234.5, math.inf, math.inf, -math.inf, 0.9, 0.5, 0.001]


def test_json_may_hold_infinities_as_r_and_go_print_them() -> None:
    assert read(JSON, b'{"loss": Inf, "epoch": 1}\n{"loss": +Inf, "epoch": 2}\n{"loss": "-Inf", "epoch": 3}\n') == [
        (1, {"loss": math.inf}),
        (2, {"loss": math.inf}),
        (3, {"loss": -math.inf}),
    ]


@pytest.mark.parametrize("form", [PrintedForm(patterns=(r"(?P<loss>\d)",)), PrintedForm()])
def test_of_one_line_no_more_values_are_taken_than_there_may_be(form: PrintedForm) -> None:
    found = read(form, b"loss=1 " * (LONGEST_LINE // 7) + b"\nloss=2\n")
    assert len(found) <= MOST_VALUES + 1
    assert found[-1][1] == {"loss": 2.0}


class Counting:
    """A pattern that counts how often it is searched for."""

    def __init__(self, pattern: str) -> None:
        self._pattern = compile_pattern(pattern)
        self.groupindex = self._pattern.groupindex
        self.searches = 0

    def search(self, text: bytes, at: int) -> object:
        self.searches += 1
        return self._pattern.search(text, at)


def test_of_a_line_full_of_values_no_more_are_looked_for_than_are_taken() -> None:
    one = reader(PrintedForm(patterns=(r"(?P<loss>\d)",)))
    one._patterns = [counting := Counting(r"(?P<loss>\d)")]
    assert len(one.read(1, b"1" * (LONGEST_LINE - 2) + b"\n2\n")) == MOST_VALUES + 1
    assert counting.searches <= MOST_VALUES + 3


def test_lines_of_many_values_cost_as_much_as_many_lines() -> None:
    one = reader(PrintedForm(patterns=(r"(?P<loss>\d)",)))
    found = one.read(1, (b"1" * MOST_VALUES + b"\n") * int(BURST))
    assert len(found) <= 10 * BURST + MOST_VALUES
    one = reader(PrintedForm(patterns=(r"(?P<loss>\d)",)))
    assert len(one.read(1, b"123\n" * int(BURST))) == 3 * BURST


def test_a_name_that_mlflow_does_not_take_is_kept_under_the_nearest_one_and_noted_once() -> None:
    one = PrintedReader(PrintedForm(), "Acc_1", lambda: 0.0)
    found = one.read(1, b"Acc@1 76.1 a/../b: 3\nacc@1 77\n")
    assert [dict(line.values) for line in found] == [{"Acc_1": 76.1, "a_.._b": 3.0}, {"Acc_1": 77.0}]
    assert one.notes[0] == "MLflow takes no metric of the name 'Acc@1': it is kept as 'Acc_1'"
    assert sum("'Acc@1'" in note for note in one.notes) == 1


@pytest.mark.parametrize("step", ["-1", "0.5", "x", "1e30", "nan", str(2**63)])
def test_a_step_that_mlflow_cannot_keep_leaves_its_line_out(step: str) -> None:
    one = reader(LOSS)
    assert one.read(1, f"epoch {step}: loss=1\n".encode()) == []
    assert one.odd_step == step


@given(st.lists(st.integers(1, 7), max_size=60))
def test_pieces_of_lines_come_to_the_same_as_whole_ones(pieces: list[int]) -> None:
    printed = b"epoch 1: loss=0.5\r\nepoch 2: loss=0.25\rnoise\nepoch 3: loss=0.125"
    one, found, at = reader(LOSS), [], 0
    for piece in pieces:
        found += one.read(1, printed[at : at + piece])
        at += piece
    found += [*one.read(1, printed[at:]), *one.last()]
    assert [(line.step, line.values["loss"]) for line in found] == [(1, 0.5), (2, 0.25), (3, 0.125)]


def test_two_streams_do_not_cut_each_others_lines() -> None:
    one = reader(LOSS)
    assert one.read(1, b"epoch 1: lo") == one.read(2, b"warn") == []
    assert [line.step for line in one.read(1, b"ss=2\n")] == [1]


@given(st.binary(max_size=300), st.sampled_from([LOSS, JSON, PrintedForm()]))
def test_no_bytes_whatever_harm_the_reader(printed: bytes, form: PrintedForm) -> None:
    read(form, printed + b"\n")
    assert read(LOSS, printed + b"\nepoch 1: loss=2\n")[-1] == (1, {"loss": 2.0})


def test_json_that_would_go_too_deep_is_no_line_of_metrics() -> None:
    deep = b'{"loss": ' * 5000 + b"1" + b"}" * 5000
    assert read(JSON, deep + b"\n" + b'{"loss": 1}\n') == [(None, {"loss": 1})]


def test_of_an_endless_line_no_more_than_its_end_is_kept() -> None:
    one = reader(LOSS)
    for _ in range(100):
        assert one.read(1, b"x" * LONGEST_LINE) == []
    assert len(one._rest[1]) == LONGEST_LINE
    assert [line.step for line in one.read(1, b" epoch 1: loss=2\n")] == [1]


def test_of_a_flood_the_first_and_the_newest_lines_count() -> None:
    now = 0.0
    one = PrintedReader(LOSS, "loss", lambda: now)
    numbers = count()
    steps: list[int | None] = []
    for _ in range(50):
        now += 0.1
        flood = b"".join(b"epoch %d: loss=1\n" % next(numbers) for _ in range(1000))
        steps += [line.step for line in one.read(1, flood)]
    steps += [line.step for line in one.last()]
    assert len(steps) < 2 * BURST + 50 * 0.1 * PER_SECOND
    assert steps[:1000] == list(range(1000))
    assert steps[-1] == 49_999
    assert steps == sorted(set(steps), key=lambda step: step or 0), "no line counts twice"
    assert one.dropped > 0


def test_a_quiet_program_gets_what_it_printed_too_fast_read_later() -> None:
    now = 0.0
    one = PrintedReader(LOSS, "loss", lambda: now)
    lines = int(BURST) + 50
    first = one.read(1, b"".join(b"epoch %d: loss=1\n" % step for step in range(lines)))
    now = 60.0
    assert len(first) + len(one.read(1, b"")) == lines
    assert one.dropped == 0


def test_no_more_names_are_taken_than_there_may_be() -> None:
    printed = b"".join(b"m%d=1\n" % number for number in range(3 * MOST_NAMES)) + b"specon.cpu_seconds=1\n"
    names = {name for _, values in read(PrintedForm(), printed) for name in values}
    assert len(names) == MOST_NAMES


def test_without_a_form_the_objective_counts_in_any_case() -> None:
    assert read(PrintedForm(), b"epoch 3: Loss: 0.5, acc=0.9\n") == [(3, {"loss": 0.5, "acc": 0.9})]


def test_a_pattern_that_makes_others_explode_takes_no_time_here() -> None:
    one = reader(PrintedForm(patterns=(r"(a+)+(a+)+(a+)+b(?P<loss>\d)",)))
    began = time.process_time()
    one.read(1, b"a" * LONGEST_LINE + b"\n")
    # Python's own library would not come to an end.
    assert time.process_time() - began < 5
