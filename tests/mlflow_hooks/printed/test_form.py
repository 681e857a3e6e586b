"""What authors say of the lines that a program prints, and how it gets into a pod."""

import re

import pytest

from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.printed.form import PrintedForm, compile_pattern, why_no_form


@pytest.mark.parametrize(
    "form",
    [
        PrintedForm(),
        PrintedForm(patterns=(r"loss=(?P<loss>\S+)$", r"^Epoch (?P<step>\d+)/")),
        PrintedForm(keys=("val/loss", "eval.acc"), step="epoch"),
        PrintedForm(patterns=(r"{{inputs.parameters.lr}} $(HOME) $$ \{{2}(?P<loss>.*)}}$$(x)?", "ü(?P<ü>.)")),
    ],
)
def test_a_form_comes_through_argo_and_kubernetes_as_it_was_written(form: PrintedForm) -> None:
    text = form.encode()
    assert not re.search(r"\{\{|\}\}|\$\(|\$\$", text), "these two would put values in"
    assert PrintedForm.decode(text) == form


@pytest.mark.parametrize("text", ["no json", "[]", '{"patterns": 1}', '"x"'])
def test_a_variable_that_holds_no_form_is_named(text: str) -> None:
    with pytest.raises(BadEnvironmentError, match="no form of printed metrics"):
        PrintedForm.decode(text)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (PrintedForm(patterns=("loss=(.+)",)), "has no named group"),
        (PrintedForm(patterns=("loss=(?P<loss>.+",)), r"none that RE2 takes .*missing \)"),
        (PrintedForm(patterns=(r"(?P<loss>\d+)(?=x)",)), "none that RE2 takes .*invalid perl operator"),
        (PrintedForm(patterns=("(?P<loss>((a{100}){100}){100})",)), "none that RE2 takes"),
        (PrintedForm(patterns=(r"(?P<acc>\d+)",)), "the objective 'loss' is not among them: 'acc'"),
        (PrintedForm(patterns=(r"(?P<step>\d+)",)), "no pattern has a group for a metric"),
        (PrintedForm(patterns=(r"(?P<step>\d)(?P<epoch>\d)(?P<loss>.)",)), "two groups for the step: step and epoch"),
        (PrintedForm(patterns=("(?P<loss>.)" + "x" * 2000,)), "up to 2000 characters"),
        (PrintedForm(patterns=("(?P<loss>.)",) * 21), "at most 20 patterns"),
        (PrintedForm(patterns=(1,)), "are texts"),  # type: ignore[arg-type]  # as an author may write it
        (PrintedForm(keys=("acc",)), "the objective 'loss' is not among them: 'acc'"),
        (PrintedForm(keys=("loss", "")), "are texts"),
        (PrintedForm(keys=("loss",), step="loss"), "'loss' is both a metric and the step"),
        (PrintedForm(keys=("loss", *map(str, range(50)))), "at most 50 metrics are read, not 51"),
    ],
)
def test_what_could_never_be_read_is_refused_in_words(form: PrintedForm, why: str) -> None:
    assert re.search(why, why_no_form(form, "loss") or "")


@pytest.mark.parametrize(
    "form",
    [
        PrintedForm(),
        PrintedForm(patterns=(r"epoch (?P<epoch>\d+)", r"loss=(?P<loss>\S+) acc=(?P<acc>\S+)")),
        PrintedForm(keys=("loss", "acc"), step="step"),
    ],
)
def test_what_can_be_read_is_taken(form: PrintedForm) -> None:
    assert why_no_form(form, "loss") is None


def test_a_pattern_never_goes_over_the_end_of_a_line() -> None:
    found = compile_pattern(r"^a(?P<loss>[^b]*)b$").search(b"a1\nb\na2b\n")
    assert found.group("loss") == b"2"
