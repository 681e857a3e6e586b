"""Why a share was not changed, by the words of Kubernetes 1.33 to 1.37."""

import pytest

from controllers.worlds.argo.calls.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    NotAllowedNowError,
    NotFoundError,
    RejectedError,
    TooManyRequestsError,
    UnavailableError,
)
from controllers.worlds.argo.reading.resize_answers import answer_in, answer_to

POD = 'Pod "sweep-x-a-0" is invalid: '
PODS = 'pods "sweep-x-a-0" is forbidden: '


@pytest.mark.parametrize(
    ("said", "why", "advice"),
    [
        (f"{POD}spec: Forbidden: Pod running on node without support for resize", "kubelet", "1.33 or newer"),
        ("InPlacePodVerticalScaling is disabled", "kubelet", "feature gate"),
        (f'{PODS}pod update requires features X which are not available on node "n1"', "kubelet", "upgrade the node"),
        (f"{POD}<nil>: Forbidden: pods with pod-level resources cannot be resized", "resources of its own", "1.36"),
        (
            (
                f"{POD}<nil>: Forbidden: resize of pods with pod-level resources is forbidden when "
                "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
            ),
            "resources of its own",
            "give the resources to the container",
        ),
        (f"{POD}spec: Forbidden: only cpu and memory resources are mutable", "claims", "1.37 or newer"),
        (
            f"{POD}spec: Forbidden: pods with node allocatable resource claims cannot be resized",
            "claims",
            "1.37 or newer",
        ),
        ("Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy", "Guaranteed", "Burstable"),
        (
            'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
            "Guaranteed",
            "leave the limits out",
        ),
        (
            f'{POD}spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
            "quality of service",
            "Burstable",
        ),
        ("In-place resize of containers with swap is not supported.", "swap", "turn swap off"),
        ("In-place pod resize is not supported on Windows", "changes no share", "Linux"),
        (
            (
                'pods "a" is forbidden: User "system:serviceaccount:t:c" cannot patch resource "pods/resize" in API '
                'group "" in the namespace "t"'
            ),
            "account may not",
            "permissions.md",
        ),
    ],
)
def test_what_no_amount_would_change_is_told_with_what_to_do(said: str, why: str, advice: str) -> None:
    answer = answer_in(said)
    assert answer.any_amount
    assert why in answer.why
    assert advice in answer.advice


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            f"{PODS}exceeded quota: q, requested: requests.cpu=200m, used: requests.cpu=900m, limited: requests.cpu=1",
            "quota",
        ),
        (f"{PODS}maximum cpu usage per Container is 1, but request is 1500m", "LimitRange"),
        (f"{PODS}minimum cpu usage per Pod is 200m, but request is 100m", "LimitRange"),
        (f"{PODS}cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000", "LimitRange"),
        (f"{PODS}ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "admission policy"),
        ('admission webhook "w.example.com" denied the request: no', "admission policy"),
        (
            f"{PODS}node didn't have enough allocatable resources: cpu, requested: 2000, allocatable: 940",
            "never give as much",
        ),
        ("Node didn't have enough capacity: cpu, requested: 2000, capacity: 940", "never give as much"),
        ("Node didn't have enough resource: cpu, requested: 300, used: 900, capacity: 1000", "no room for it now"),
    ],
)
def test_what_another_amount_might_change_is_told_with_the_servers_own_words(said: str, why: str) -> None:
    answer = answer_in(said)
    assert not answer.any_amount
    assert why in answer.why
    assert said in answer.why


def test_what_nobody_knows_is_passed_on_as_it_was_said_and_cut() -> None:
    assert answer_in("the stars stand wrong").line == "the stars stand wrong"
    assert len(answer_in("x" * 9000).line) == 300
    assert answer_in("").line


@pytest.mark.parametrize(
    ("failure", "refused"),
    [
        (ForbiddenError("exceeded quota"), True),
        (RejectedError("only cpu and memory resources are mutable"), True),
        (NotFoundError("PATCH /p/resize: 404: the server could not find the requested resource"), True),
        (NotFoundError('PATCH /p/resize: 404: pods "sweep-x-a-0" not found'), False),
        (ConflictError("the object has been modified"), False),
        (UnavailableError("it does not answer"), False),
        (TooManyRequestsError("leave it alone"), False),
        (NotAllowedNowError("another leads"), False),
    ],
)
def test_only_a_refusal_is_one(failure: ApiError, refused: bool) -> None:  # noqa: FBT001
    assert (answer_to(failure) is not None) is refused
