"""Which earlier sweeps a sweep names, as they are written down, and what others may have written."""

import pytest

from controllers.core import labels
from controllers.core.after_sweeps import NOT_AFTER, SAME_EXPERIMENT, AfterError, after_in, after_names, after_notes
from controllers.core.aims import Constraint, FurtherObjective
from controllers.core.model import Direction

NOTES = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "maximize"}


def test_what_is_written_is_read_back_with_what_the_sweep_wants() -> None:
    names = after_names(["digits-3", "6f1c.vae", SAME_EXPERIMENT, "digits-3"])
    assert names == ("digits-3", "6f1c.vae", SAME_EXPERIMENT)
    notes = {**NOTES, **after_notes(names), labels.ANNOTATION_SEARCH: "{}"}
    notes[labels.ANNOTATION_FURTHER_OBJECTIVES] = "minimize latency"
    notes[labels.ANNOTATION_CONSTRAINTS] = "memory_mb <= 512"
    after = after_in(notes)
    assert (after.names, after.ids) == (names, names[:2])
    assert (after.objective, after.direction, after.search) == ("loss", Direction.MAXIMIZE, "{}")
    assert after.aims.further == (FurtherObjective("latency", Direction.MINIMIZE),)
    assert after.aims.constraints == (Constraint("memory_mb", "<=", 512.0),)


def test_a_sweep_names_one_several_or_none() -> None:
    assert after_names(None) == ()
    assert after_names("same experiment") == (SAME_EXPERIMENT,)
    assert after_notes(()) == {}
    assert after_in(NOTES) == NOT_AFTER


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "after= lists ids of sweeps, or is 'same experiment', unlike 3"),
        ([3], "names the sweep 3: an id has"),
        ("", "names the sweep ''"),
        ("same", None),
        ("a' OR tags.b != '", "names the sweep"),
        ("{{workflow.uid}}.vae", "names the sweep"),
        (["a", "x" * 121], "at most 120 letters"),
        ([f"s{n}" for n in range(33)], "names 33 sweeps, and may name 32"),
    ],
)
def test_what_names_no_sweep_is_refused_with_its_value(given: object, words: str | None) -> None:
    if words is None:
        assert after_names(given) == (given,)
        return
    with pytest.raises(AfterError, match=words):
        after_names(given)


@pytest.mark.parametrize("text", ["' OR ''='", ", ", "a,b", "x" * 4000, ", ".join("abc" for _ in range(9)) + ", '"])
def test_what_makes_no_sense_counts_as_if_it_was_not_there(text: str) -> None:
    assert after_in({**NOTES, labels.ANNOTATION_AFTER: text}) == NOT_AFTER
