"""Whether a cluster takes a workflow of many trials."""

import json
from typing import Any

import pytest
from hera.workflows import Workflow

from hera_specon import log_uniform, tpe
from hera_specon.errors import SubmissionError
from hera_specon.submission.size import MOST_OF_ARGO, MOST_OF_ETCD, check_size, size_of
from tests.hera_specon.built_sweeps import sweep


def manifest(**settings: Any) -> dict[str, Any]:  # noqa: ANN401
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(**settings)
    made: dict[str, Any] = json.loads(json.dumps(w.to_dict()))
    return made


def many(trials: int, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
    """A workflow of ``trials`` trials, copied from a thousand or so: to build as many takes long."""
    made = manifest(trials=1200, **settings)
    (step,) = next(one for one in made["spec"]["templates"] if one["name"] == "vae")["steps"][0]
    items = step["withItems"]
    step["withItems"] = [items[number % len(items)] | {"0": f"t{number:05}"} for number in range(trials)]
    return made


def test_an_everyday_sweep_fits() -> None:
    check_size(manifest(trials=500), offloaded=False)


def test_more_trials_than_argo_can_record_are_refused_with_sizes_and_what_to_do() -> None:
    with pytest.raises(SubmissionError) as refused:
        check_size(many(5000), offloaded=False)

    size = size_of(many(5000))
    first, several, offloading = refused.value.problems
    assert f"5,000 trials are too many for one workflow, which has {size.workflow:,} bytes with them" in first
    assert f"takes about {size.record:,} more" in first
    assert f"Argo takes {MOST_OF_ARGO:,} in all: {size.fit(offloaded=False):,} of them fit" in first
    assert "several sweeps of fewer trials" in several
    assert "nodeStatusOffLoad: true" in offloading
    assert "--offloaded" in offloading
    assert size.workflow < MOST_OF_ARGO, "the workflow alone would be taken, and Argo would end it later"


def test_as_many_trials_as_are_said_to_fit_do_and_one_more_does_not() -> None:
    for offloaded in (False, True):
        fit = size_of(many(5000, space={f"p{n}": log_uniform(1e-9, 1) for n in range(9)})).fit(offloaded=offloaded)
        check_size(many(fit - 5, space={f"p{n}": log_uniform(1e-9, 1) for n in range(9)}), offloaded=offloaded)
        with pytest.raises(SubmissionError):
            check_size(many(fit + 50, space={f"p{n}": log_uniform(1e-9, 1) for n in range(9)}), offloaded=offloaded)


def test_twenty_thousand_trials_fit_where_the_record_is_offloaded_and_no_more_since_none_would_be_read() -> None:
    check_size(many(20_000), offloaded=True)
    assert size_of(many(20_000)).workflow < MOST_OF_ETCD
    with pytest.raises(SubmissionError, match=r"20,001 trials .* a controller reads 20,000"):
        check_size(many(20_001, search=tpe()), offloaded=True)


def test_workers_and_arrivals_take_nodes_of_their_own() -> None:
    plain, gang = (size_of(manifest(trials=10, **given)) for given in ({}, {"workers": 4}))
    assert gang.record > 3 * plain.record


def test_of_several_sweeps_all_trials_count() -> None:
    with Workflow(generate_name="two-", entrypoint="vae") as w:
        sweep(trials=10)
        sweep(trials=10, name="gru")
    assert size_of(w.to_dict()).trials == 20
