from typing import Any

from hera.workflows import Resources, Workflow

from controllers.core.kueue import LABEL_GROUP, LABEL_QUEUE
from hera_specon import tpe
from hera_specon.doctor.sweep_needs import SweepNeeds, sweep_needs
from tests.hera_specon.built_sweeps import sweep


def needs(workflow: dict[str, Any] | None = None, **settings: object) -> SweepNeeds:
    with Workflow(generate_name="vae-", entrypoint="vae", **(workflow or {})) as w:
        sweep(**settings)
    return sweep_needs(w.to_dict())


def test_as_many_pods_as_may_run_at_once_need_room() -> None:
    resources = Resources(cpu_request="250m", memory_request="512Mi", cpu_limit="1")
    (all_trials,) = needs(resources=resources).each
    (some,) = needs(resources=resources, parallelism=2).each
    (gangs,) = needs(resources=resources, workers=4).each
    assert (all_trials.pods, some.pods, gangs.pods) == (3, 2, 12)
    # Argo's helper requests some, too.
    assert (all_trials.own_cpu, round(all_trials.cpu, 3), all_trials.cpu_limit) == (0.25, 0.26, 1.0)
    assert (all_trials.memory, all_trials.memory_limit) == ((512 + 32) * 2**20, 0.0)


def test_a_trial_that_requests_no_memory_needs_none() -> None:
    assert needs().each[0].memory == 0.0


def test_the_account_is_the_one_by_which_argos_executor_reports() -> None:
    assert needs().account == "default"
    assert needs({"service_account_name": "trains"}).account == "trains"
    assert needs({"service_account_name": "trains"}, service_account_name="own").account == "own"
    manifest: dict[str, Any] = {"spec": {"executor": {"serviceAccountName": "reports"}, "serviceAccountName": "trains"}}
    assert sweep_needs(manifest).account == "reports"


def test_trials_of_a_search_that_is_asked_wait_for_a_controller() -> None:
    assert needs().waits == ()
    assert needs(search=tpe()).waits == ("vae",)


def test_a_queue_is_found_wherever_pods_get_their_labels() -> None:
    assert (needs().queue, needs().grouped) == ("", False)
    assert needs(labels={LABEL_QUEUE: "team"}).queue == "team"
    assert needs(queue="team").grouped
    assert needs({"labels": {LABEL_QUEUE: "team"}}).queue == "team"
    assert needs(labels={LABEL_QUEUE: "team", LABEL_GROUP: "g"}).grouped
