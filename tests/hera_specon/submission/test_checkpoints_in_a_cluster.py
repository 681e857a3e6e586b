"""What is said of the checkpoints of a sweep that is submitted, and of its id where it was begun elsewhere."""

import json
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core import labels
from controllers.core.expressions import SWEEP_UID
from controllers.worlds.local.workflow import read_workflow
from hera_specon.errors import SubmissionError
from hera_specon.submission.checks import check_for_cluster, keep_warning
from hera_specon.submission.edits import Overrides, edit_manifest
from mlflow_hooks.contract import ENV_TRIAL_ID
from tests.hera_specon.built_sweeps import environment, sweep


def manifest(**settings: object) -> dict[str, Any]:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(**settings)
    document: dict[str, Any] = json.loads(json.dumps(w.to_dict()))
    return document


def trial_of(document: dict[str, Any]) -> dict[str, Any]:
    (found,) = [template for template in document["spec"]["templates"] if template["name"] == "vae-trial"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("settings", "how"),
    [
        ({"state": "s3://b/p"}, "`specon clean --state s3://b/p` does"),
        ({"state": "mlflow"}, "deleting their runs in MLflow does"),
        ({"state_claim": "specon-state"}, "`specon clean --folder PATH` does where their volume is mounted"),
    ],
)
def test_that_nothing_is_removed_there_is_said_with_what_does(settings: dict[str, Any], how: str) -> None:
    told = keep_warning(manifest(keep="best", **settings))
    assert told == f"keep='best' removes no checkpoints in a cluster at the end of sweep 'vae': {how}"
    assert keep_warning(manifest(keep="all", **settings)) is None
    assert keep_warning(manifest(**settings)) is None


def test_a_word_that_says_nothing_of_checkpoints_is_refused() -> None:
    document = manifest(keep="best", state="s3://b/p")
    check_for_cluster(document)
    trial_of(document)["metadata"]["annotations"][labels.ANNOTATION_KEEP] = "bset"
    with pytest.raises(SubmissionError, match="has 'bset' as annotation"):
        check_for_cluster(document)


def test_a_sweep_that_was_begun_on_one_machine_has_the_same_trials_in_a_cluster() -> None:
    uid = "vae-1-5f0c2a9e-00"
    document = edit_manifest(manifest(state="s3://b/p"), Overrides(parameters={labels.PARAMETER_CONTINUE: uid}))
    parameters = {one["name"]: one["value"] for one in document["spec"]["arguments"]["parameters"]}
    assert parameters[labels.PARAMETER_CONTINUE] == uid
    in_a_cluster = environment(trial_of(document))[ENV_TRIAL_ID].replace(SWEEP_UID, uid)
    here = read_workflow(manifest(state="s3://b/p"), "vae", uid, {}, (1.0,)).trials()
    assert [trial.step.env[ENV_TRIAL_ID] for trial in here] == [
        in_a_cluster.replace("{{inputs.parameters.trial}}", f"t{number:03d}") for number in range(3)
    ]
