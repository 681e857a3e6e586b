"""A sweep is at home in one namespace, also once its workflow is deleted or long over: nobody else goes on with it."""

import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest
from mlflow.tracking import MlflowClient

from controllers.tracking.homes import NAMESPACE_TAG, home_of
from controllers.tracking.sweep_runs import ForeignSweepError, Steering, open_sweep
from tests.controllers.cluster.clusters_in_memory import gated
from tests.controllers.cluster.conftest import Stage, stage  # noqa: F401 - a fixture
from tests.controllers.worlds.argo.conftest import fake  # noqa: F401 - a fixture
from tests.controllers.worlds.argo.fake_api import FakeApi
from tests.controllers.worlds.argo.objects import NAMESPACE
from tests.hostile_tenants.test_forged_objects import campaigns, continuing, named


def recorded(client: MlflowClient, sweep: str, namespace: str, experiment: str = "theirs") -> None:
    """Let a controller have recorded a sweep of a namespace, whose workflow may be gone by now."""
    uid = sweep.partition(".")[0]
    open_sweep(client, sweep, experiment, Steering("theirs · default", "default", uid, namespace))


def goes_on_with(it: Stage, sweep_uid: str, sweep: str = "vae") -> None:
    """Let the workflow of the stage continue another's sweep, whose workflow is not to be seen."""
    it.campaign = replace(it.campaign, sweep_uid=sweep_uid, sweeps={f"{sweep_uid}.{sweep}": "mine"}, home_known=False)
    it.world.now = {it.trial: gated(it.trial)}


@pytest.mark.parametrize("experiment", ["mine", "theirs"])
def test_the_sweep_of_another_namespace_is_left_alone_though_its_workflow_is_gone(
    stage: Callable[..., Stage],  # noqa: F811
    experiment: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    it, victim = stage(), uuid.uuid4().hex
    recorded(it.client, f"{victim}.vae", "victims", f"{experiment}-{victim}")
    goes_on_with(it, victim)
    run = it.start()
    it.step_until(run, lambda: "is left alone" in caplog.text)
    for _ in range(3):
        run.step(it.campaign)
    assert (it.world.done, it.world.advanced, run.done) == ([], 0, False)
    assert home_of(it.client, victim) == "victims"
    it.campaign = replace(it.campaign, finished=True)
    run.step(it.campaign)
    assert run.done


@pytest.mark.parametrize(
    ("theirs", "mine", "sweep"),
    [("second.try.vae", "second", "try.vae"), ("second.vae", "second.vae", "t"), ("a.b.c.vae", "a.b", "c.vae")],
    ids=["a beginning", "a longer name", "another beginning"],
)
def test_a_name_that_is_the_beginning_of_anothers_is_the_same_home(
    stage: Callable[..., Stage],  # noqa: F811
    theirs: str,
    mine: str,
    sweep: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    it, own = stage(), uuid.uuid4().hex[:8]
    recorded(it.client, own + theirs, "victims")
    goes_on_with(it, own + mine, sweep)
    it.step_until(it.start(), lambda: "is left alone" in caplog.text)
    assert (it.world.done, it.world.advanced) == ([], 0)


def test_a_sweep_of_the_same_namespace_goes_on_though_its_workflow_is_gone(
    stage: Callable[..., Stage],  # noqa: F811
) -> None:
    it, before = stage(), uuid.uuid4().hex
    recorded(it.client, f"{before}.vae", it.campaign.namespace)
    goes_on_with(it, before)
    it.step_until(it.start(), lambda: it.world.done)


def test_a_name_that_nobody_had_before_is_its_own_home(stage: Callable[..., Stage]) -> None:  # noqa: F811
    it, name = stage(), f"second-try-{uuid.uuid4().hex[:8]}"
    goes_on_with(it, name)
    run = it.start()
    it.step_until(run, lambda: it.world.done)
    it.step_until(run, lambda: home_of(it.client, name) == it.campaign.namespace)


def test_nothing_is_done_before_mlflow_has_said_whose_a_sweep_is(
    stage: Callable[..., Stage],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it, before = stage(), uuid.uuid4().hex
    asked: list[str] = []

    def away(_: object, sweep_uid: str) -> str:
        asked.append(sweep_uid)
        message = "MLflow is away"
        raise OSError(message)

    monkeypatch.setattr("controllers.tracking.sweep_runs.home_of", away)
    goes_on_with(it, before)
    run = it.start()
    it.step_until(run, lambda: asked)
    for _ in range(3):
        run.step(it.campaign)
    assert (it.world.done, it.world.advanced, run.done) == ([], 0, False)


@pytest.mark.parametrize("name", ["a' OR 'b' = 'b", "", "x" * 300, "-", "a%"])
def test_a_name_that_could_be_more_never_gets_to_mlflow(
    stage: Callable[..., Stage],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    it, asked = stage(), list[str]()
    monkeypatch.setattr("controllers.tracking.sweep_runs.home_of", lambda _, uid: asked.append(uid))
    goes_on_with(it, name or "'")
    it.step_until(it.start(), lambda: "names no sweep to continue" in caplog.text)
    assert asked == []


def test_what_only_looks_alike_to_mlflow_is_no_home(client: MlflowClient) -> None:
    own = uuid.uuid4().hex[:8]
    recorded(client, f"{own}-x.vae", "others")
    assert home_of(client, f"{own}_x") is None
    assert home_of(client, own) is None
    assert home_of(client, f"{own}-x") == "others"


def test_of_two_that_are_here_a_beginning_of_a_name_is_the_home_of_the_first(fake: FakeApi) -> None:  # noqa: F811
    victim = continuing(named("victim", NAMESPACE, "victim-uid"), "second.try")
    thief = continuing(named("thief", "attacker", "thief-uid"), "second")
    for one, began in ((victim, "2023-01-01T00:00:00Z"), (thief, "2024-01-01T00:00:00Z")):
        one["metadata"]["creationTimestamp"] = began
    assert campaigns(fake, victim, thief) == [(NAMESPACE, "victim")]


def test_a_sweep_of_a_cluster_goes_on_on_a_machine_of_its_owner(
    stage: Callable[..., Stage],  # noqa: F811
) -> None:
    client, uid = stage().client, uuid.uuid4().hex
    recorded(client, f"{uid}.vae", "lab")
    here = open_sweep(client, f"{uid}.vae", "theirs", Steering("theirs · default", "default", uid))
    with pytest.raises(ForeignSweepError, match="belongs to namespace 'lab', not to 'other'"):
        open_sweep(client, f"{uid}.vae", "theirs", Steering("theirs · default", "default", uid, "other"))
    assert client.get_run(here.run_id).data.tags[NAMESPACE_TAG] == "lab"
    assert home_of(client, uid) == "lab"
