"""From whose checkpoints a trial went on, as an annotation that anybody may have written."""

import json

import pytest

from controllers.core import labels
from controllers.core.lineage import MOST_CLONES, clone_annotations, lineage_in
from controllers.core.model import TrialId

TRIAL = TrialId("uid.sweep.t001")


def test_what_is_written_is_read_again() -> None:
    lineage = (TrialId("uid.sweep.t003"), TrialId("uid.sweep.t000"))
    notes = clone_annotations(lineage, (("lr", 0.1),))
    assert notes[labels.ANNOTATION_LINEAGE] == '["t003", "t000"]'
    assert notes[labels.ANNOTATION_PARAMS] == '{"lr": 0.1}'
    assert lineage_in(notes[labels.ANNOTATION_LINEAGE], TRIAL) == lineage
    assert set(clone_annotations(lineage, ())) == {labels.ANNOTATION_LINEAGE}


@pytest.mark.parametrize(
    "written",
    ["", "{}", "[1]", '["../t3"]', '["a.b"]', f'["{"t" * 64}"]', "[" * 3000, json.dumps(["t1"] * (MOST_CLONES + 1))],
)
def test_any_other_text_is_no_lineage(written: str) -> None:
    assert lineage_in(written, TRIAL) == ()


def test_trials_without_a_sweep_in_their_names_are_found_too() -> None:
    assert lineage_in('["t3"]', TrialId("t1")) == ("t3",)
