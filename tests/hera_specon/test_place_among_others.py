"""What a sweep counts among others: written on its trials, checked, and held back at the gates once submitted."""

from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core import labels
from controllers.worlds.argo.reading.workflows import record_of
from hera_specon import Sweep, choice, minimize
from hera_specon.errors import SweepError
from hera_specon.submission.edits import Overrides, edit_manifest


def built(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - any of Sweep's
    with Workflow(generate_name="vae-", entrypoint="vae") as made:
        Sweep(
            name="vae",
            image="trainer:1",
            command=["train"],
            space={"lr": choice(0.1, 0.2)},
            search="grid",
            objective=minimize("loss"),
            **settings,
        )
    return dict(made.to_dict())


def trial_of(manifest: dict[str, Any]) -> dict[str, Any]:
    (template,) = [one for one in manifest["spec"]["templates"] if one["name"] == "vae-trial"]
    return dict(template)


def test_weight_and_priority_stand_on_the_trials_and_the_controller_reads_them() -> None:
    manifest = built(weight=2.5, priority=-3)
    notes = trial_of(manifest)["metadata"]["annotations"]
    assert (notes[labels.ANNOTATION_WEIGHT], notes[labels.ANNOTATION_PRIORITY]) == ("2.5", "-3")
    record = record_of({**manifest, "metadata": {"name": "vae-x1", "namespace": "lab", "uid": "u"}})
    assert record is not None
    assert [(sweep.weight, sweep.priority) for sweep in record.sweeps] == [(2.5, -3)]


def test_a_sweep_that_names_neither_says_nothing_and_counts_one() -> None:
    manifest = built()
    notes = trial_of(manifest)["metadata"]["annotations"]
    assert not {labels.ANNOTATION_WEIGHT, labels.ANNOTATION_PRIORITY} & notes.keys()
    record = record_of({**manifest, "metadata": {"name": "vae-x1", "namespace": "lab", "uid": "u"}})
    assert record is not None
    assert [(sweep.weight, sweep.priority) for sweep in record.sweeps] == [(1.0, 0)]


def test_first_attempts_of_a_sweep_that_takes_turns_wait_for_the_controller_under_any_policy() -> None:
    before = trial_of(edit_manifest(built(policy="default"), Overrides()))["podSpecPatch"]
    for settings in ({"weight": 1.0}, {"priority": 0}):
        after = trial_of(edit_manifest(built(policy="default", **settings), Overrides()))["podSpecPatch"]
        assert "retries == '0'" in after
        assert "retries == '0'" not in before


@pytest.mark.parametrize(
    ("settings", "shown"),
    [({"weight": 0}, "weight= is a number"), ({"priority": 1.5}, "priority= is a whole"), ({"priority": 999}, "999")],
)
def test_what_is_out_of_bounds_is_refused(settings: dict[str, Any], shown: str) -> None:
    with pytest.raises(SweepError, match=shown):
        built(**settings)
