"""What a sweep says of the folders that its trials write into, and what a cluster makes of that."""

from collections.abc import Callable
from typing import Any

import pytest
from hera.workflows import EmptyDirVolume, ExistingVolume, Workflow

from controllers.core import labels
from hera_specon import Sweep, SweepError, choice, minimize
from hera_specon.errors import SubmissionError
from hera_specon.manifest import trial_templates
from hera_specon.submission.checks import check_for_cluster
from hera_specon.submission.working_folders import folder_warnings
from tests.hera_specon.cli.cluster_objects import Json


def built(**settings: Any) -> Json:  # noqa: ANN401 - any setting of a sweep
    with Workflow(generate_name="s-", entrypoint="s") as workflow:
        Sweep(
            name="s",
            image="x",
            command=["python", "train.py"],
            space={"x": choice(1, 2)},
            search="grid",
            objective=minimize("loss"),
            state_claim="state",
            **settings,
        )
    manifest: Json = workflow.to_dict()
    return manifest


def annotations(manifest: Json) -> dict[str, str]:
    (template,) = trial_templates(manifest)
    found: dict[str, str] = template["metadata"]["annotations"]
    return found


def test_trials_share_their_folder_unless_the_sweep_says_otherwise() -> None:
    assert labels.ANNOTATION_OWN_FOLDER not in annotations(built())
    assert annotations(built(own_folder=True))[labels.ANNOTATION_OWN_FOLDER] == "[]"
    assert annotations(built(own_folder=["out", "a/b"]))[labels.ANNOTATION_OWN_FOLDER] == '["out", "a/b"]'


@pytest.mark.parametrize("wrong", ["out", ["/out"], ["../out"], [1], [""], ["."], 1, None])
def test_anything_else_than_paths_within_the_folder_is_refused(wrong: object) -> None:
    with pytest.raises(SweepError, match="own_folder= "):
        built(own_folder=wrong)


@pytest.mark.parametrize(
    "use",
    [
        {"args": ["--save=$(SPECON_TRIAL_FOLDER)/model.pt"]},
        {"env": {"TORCH_HOME": "$(SPECON_TRIAL_FOLDER)"}},
    ],
)
def test_a_trial_folder_that_no_pod_has_is_refused_before_anything_is_sent(use: dict[str, Any]) -> None:
    with pytest.raises(SubmissionError, match=r"uses \$\(SPECON_TRIAL_FOLDER\), which only `specon run` sets"):
        check_for_cluster(built(**use))
    named = {"SPECON_TRIAL_FOLDER": "/scratch", **use.get("env", {})}
    check_for_cluster(built(**{**use, "env": named}))


@pytest.mark.parametrize(
    ("working_dir", "volume", "shared"),
    [
        ("/shared/project", lambda: ExistingVolume(name="v", claim_name="c", mount_path="/shared"), True),
        ("/project", lambda: ExistingVolume(name="v", claim_name="c", mount_path="/shared"), False),
        ("/shared", lambda: EmptyDirVolume(name="v", mount_path="/shared"), False),
        (None, lambda: ExistingVolume(name="v", claim_name="c", mount_path="/shared"), False),
    ],
)
def test_trials_that_run_on_a_volume_of_several_pods_are_warned_of(
    working_dir: str | None, volume: Callable[[], Any], *, shared: bool
) -> None:
    manifest = built(working_dir=working_dir, volumes=[volume()], own_folder=True)
    told = folder_warnings(manifest)
    assert bool(told) is shared
    if shared:
        assert f"the trials of s run in {working_dir}, on volume 'v', which they share" in told[0]
        assert "own_folder= means nothing in a cluster" in told[0]
