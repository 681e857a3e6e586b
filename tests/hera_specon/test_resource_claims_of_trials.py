"""The resource claims of a sweep's trials: in their pods, and refused where they are none."""

import json
from typing import Any

import pytest

from controllers.core.expressions import claim_templates, resource_claims, without_argo
from hera_specon.errors import SweepError
from hera_specon.submission.checks import asked_claims
from tests.hera_specon.built_sweeps import built, sweep

CLAIMS = {"gpu": "one-gpu", "nic": "fast.nic"}


def test_each_trial_claims_by_its_templates_and_its_container_gets_the_devices() -> None:
    trial = built(resource_claims=CLAIMS)["vae-trial"]
    assert trial["container"]["resources"]["claims"] == [{"name": "gpu"}, {"name": "nic"}]
    assert resource_claims("vae", CLAIMS, gang=False) in trial["podSpecPatch"]
    assert claim_templates(trial["podSpecPatch"]) == CLAIMS


def test_each_worker_of_a_gang_claims_its_own() -> None:
    worker = built(resource_claims=CLAIMS, workers=2)["vae-worker"]
    assert worker["container"]["resources"]["claims"] == [{"name": "gpu"}, {"name": "nic"}]
    assert resource_claims("vae", CLAIMS, gang=True) in worker["podSpecPatch"]


@pytest.mark.parametrize("gang", [False, True])
def test_the_pod_that_only_ends_a_stopped_trial_claims_nothing(gang: bool) -> None:  # noqa: FBT001 - as parametrized
    expression = resource_claims("vae", CLAIMS, gang=gang)
    condition, _, claims = expression.removeprefix("{{=").removesuffix("}}").partition(" ? [] : ")
    assert condition.endswith("['io/stop-vae-' + inputs.parameters.trial] != nil")
    assert claims.count("resourceClaimTemplateName") == len(CLAIMS)


@pytest.mark.parametrize("gang", [False, True])
def test_without_argo_the_claims_are_worked_out_as_none(gang: bool) -> None:  # noqa: FBT001 - as parametrized
    patch = f'{{"resourceClaims": {resource_claims("vae", CLAIMS, gang=gang)}}}'
    assert json.loads(without_argo(patch)) == {"resourceClaims": []}


def test_a_sweep_without_claims_is_written_as_before() -> None:
    trial = built()["vae-trial"]
    assert "claims" not in trial["container"]["resources"]
    assert "resourceClaims" not in trial["podSpecPatch"]
    assert not claim_templates(trial["podSpecPatch"])


def test_a_manifest_tells_what_its_trials_claim() -> None:
    templates = list(built(resource_claims={"gpu": "one-gpu"}).values())
    assert asked_claims({"spec": {"templates": templates}}) == {"vae": {"gpu": "one-gpu"}}


@pytest.mark.parametrize(
    ("claims", "shown"),
    [
        ("one-gpu", "such as {'gpu': 'one-gpu'}, and not 'one-gpu'"),
        ({f"c{number}": "t" for number in range(33)}, "at most 32 claims"),
        ({"GPU": "one-gpu"}, "names a claim 'GPU'"),
        ({"a" * 64: "one-gpu"}, "names a claim"),
        ({3: "one-gpu"}, "names a claim 3"),
        ({"gpu": "it's"}, "has \"it's\" for 'gpu'"),
        ({"gpu": None}, "has None for 'gpu'"),
        ({"gpu": "x" * 254}, "names no ResourceClaimTemplate"),
    ],
)
def test_what_are_no_claims_is_refused_where_the_sweep_is_written(claims: Any, shown: str) -> None:  # noqa: ANN401
    with pytest.raises(SweepError) as caught:
        sweep(resource_claims=claims)
    assert shown in str(caught.value)


def test_claims_of_the_sweep_are_not_patched_over() -> None:
    with pytest.raises(SweepError, match="resourceClaims"):
        built(resource_claims=CLAIMS, pod_spec_patch="resourceClaims: []")
