"""Further objectives and constraints as pods carry them: bounded, and left out where they make no sense."""

import logging

import pytest

from controllers.core import labels
from controllers.core.aims import NO_AIMS, Aims, Constraint, Direction, FurtherObjective
from controllers.worlds.argo.reading.definitions import TrialDefinition, read_definition
from mlflow_hooks import contract


def defined(where: str, further: str = "", constraints: str = "") -> TrialDefinition:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    notes |= {labels.ANNOTATION_FURTHER_OBJECTIVES: further, labels.ANNOTATION_CONSTRAINTS: constraints}
    found = read_definition(where, {}, notes, {contract.ENV_TRIAL_ID: "uid.vae.t000"})
    assert found is not None
    return found


def test_they_are_read_from_the_annotations_of_a_pod_and_count_by_their_length() -> None:
    found = defined("pod a", "maximize speed", "memory_mb <= 512")
    further, bounds = (FurtherObjective("speed", Direction.MAXIMIZE),), (Constraint("memory_mb", "<=", 512.0),)
    assert found.aims == Aims(further, bounds)
    assert found.length == defined("pod b").length + len("maximize speed") + len("memory_mb <= 512")


@pytest.mark.parametrize(
    ("further", "constraints"),
    [
        ("speed", ""),
        ("minimize loss", ""),
        (", ".join(f"minimize m{number}" for number in range(5000)), ""),
        ("minimize " + "x" * 100_000, ""),
        ("", "memory_mb <= 1e999"),
        ("", "memory_mb <= " + "9" * 100_000),
        ("", ", ".join(["m <= 1"] * 5000)),
    ],
)
def test_aims_that_make_no_sense_are_warned_of_and_left_out(
    further: str, constraints: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = defined(f"pod {hash((further, constraints))}", further, constraints)
    assert (found.aims, found.objective) == (NO_AIMS, "loss")
    (record,) = caplog.records
    assert "goes on with its first objective alone" in record.getMessage()
    assert len(record.getMessage()) < 500
