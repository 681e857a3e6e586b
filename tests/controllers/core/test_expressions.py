"""Argo's expressions: what holds of them in every version of Argo."""

import pytest

from controllers.core.expressions import (
    gates,
    main_container,
    older_gates,
    without_argo,
    worker_container,
    worker_gates,
)

GATES = (
    gates("vae"),
    gates("vae", first=True),
    gates("vae", every=True),
    worker_gates("vae"),
    worker_gates("vae", first=True),
)
PATCHES = (*GATES, main_container("vae"), worker_container("vae"))


@pytest.mark.parametrize("expression", PATCHES)
def test_a_pods_patch_can_be_worked_out_where_argo_does_not_know_how_the_last_attempt_ended(expression: str) -> None:
    # Argo 3.6 leaves an expression as it is that names lastRetry's fields, and then no pod of the step can be made.
    assert "lastRetry." not in expression


@pytest.mark.parametrize("expression", PATCHES)
def test_a_pods_patch_is_worked_out_for_each_attempt_and_not_once_for_all(expression: str) -> None:
    assert "retries" in expression or "gang-attempt" in expression


@pytest.mark.parametrize("expression", [*GATES, older_gates("vae"), older_gates("vae", first=True)])
def test_gates_of_this_and_of_earlier_versions_are_open_where_there_is_no_argo(expression: str) -> None:
    assert without_argo(f'{{"schedulingGates": {expression}}}') == '{"schedulingGates": []}'


@pytest.mark.parametrize("expression", [main_container("vae"), worker_container("vae")])
def test_the_container_of_this_and_of_earlier_versions_is_the_authors_where_there_is_no_argo(expression: str) -> None:
    needs = ", resources: {'$patch': 'replace', requests: {cpu: '10m', memory: '32Mi'} } "
    assert needs in expression
    assert "}}" not in expression.removesuffix("}}")  # which would end it
    for written in (expression, expression.replace(needs, "")):
        assert without_argo(f'{{"containers": [{written}]}}') == '{"containers": [{"name": "main"}]}'
