"""What Sweep builds, as the local world reads it."""

import json
from typing import Any

from hera.workflows import DAG, Parameter, Steps, Workflow

from controllers.core import labels
from controllers.worlds.local.workflow import PlannedTrial, read_workflow
from hera_specon import SpeCon, Sweep, at_random, choice, integer, log_uniform, minimize
from hera_specon.points import points
from mlflow_hooks import contract

SPACE = {"lr": log_uniform(1e-7, 1e-2), "activation": choice("relu", "tanh", "<&>"), "hidden": integer(32, 256)}
SETTINGS: dict[str, Any] = {
    "image": "trainer:1",
    "space": SPACE,
    "trials": 12,
    "seed": 4,
    "objective": minimize("loss"),
    "policy": SpeCon(alpha=0.02),
}


@Sweep.script(**SETTINGS)
def fit(lr: float, activation: str, hidden: int) -> None:
    print(lr, activation, hidden)  # noqa: T201 - a stand-in for training


def planned(workflow: Workflow) -> tuple[PlannedTrial, ...]:
    return read_workflow(workflow.to_dict(), name="vae-abc", uid="u1", parameters={}).trials()


def test_every_trial_is_planned_with_its_hyperparameters_and_identity() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        Sweep(name="vae", command=["python", "-m", "jobs.vae"], **SETTINGS)
    for number, (trial, point) in enumerate(zip(planned(w), points(SPACE, "random", 12, 4), strict=True)):
        step = trial.step
        assert step.args == tuple(f"--{name}={value}" for name, value in point.items())
        assert json.loads(step.env[contract.ENV_PARAMS]) == point
        assert step.env[contract.ENV_TRIAL_ID] == f"u1.vae.t{number:03}"
        assert step.labels == {labels.LABEL_SWEEP: "vae", labels.LABEL_TRIAL: f"t{number:03}"}
        assert step.annotations[labels.ANNOTATION_POLICY] == "specon:alpha=0.02"
        assert (step.cpu, step.cpu_guessed, step.cpu_limit, step.grace_s) == (1.0, True, None, 60.0)


def test_trials_arrive_after_their_delays() -> None:
    arrivals = at_random(within=300, seed=1)
    with Workflow(generate_name="vae-", entrypoint="main") as w:
        sweep = Sweep(name="vae", command=["train"], arrivals=arrivals, inputs=[Parameter(name="data")], **SETTINGS)
        with Steps(name="main"):
            sweep(arguments={"data": "digits"})
    assert sorted(trial.delay for trial in planned(w)) == sorted(arrivals.delays(12))


def test_a_training_function_is_planned_with_its_source() -> None:
    with Workflow(generate_name="fit-", entrypoint="main") as w, DAG(name="main"):
        fit()
    trials = planned(w)
    assert len(trials) == 12
    assert all("def fit(lr: float" in (trial.step.source or "") for trial in trials)


def test_a_fourth_failure_is_followed_by_no_other_attempt_whatever_moves_its_policy_may_make() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        Sweep(name="vae", command=["train"], **SETTINGS)
    rule = planned(w)[0].step.retry
    assert rule is not None
    assert [rule.allows(failures, 1) for failures in (1, 3, 4)] == [True, True, False]
    assert 0 < rule.wait_s(1) < rule.wait_s(2)
