import json

from hera.workflows import DAG, Container, ExistingVolume, Parameter, Steps, Workflow, script
from pydantic import TypeAdapter

from controllers.worlds.local.workflow import PodStep, read_workflow
from controllers.worlds.local.workflow.steps import Mount
from hera_specon import Sweep, choice, every, log_uniform, minimize
from tests.controllers.worlds.local.workflow.workflow_manifests import Run

SPACE = {"lr": log_uniform(1e-5, 1e-1), "units": choice(8, 16)}


def vae(**settings: object) -> Sweep:
    given = {"name": "vae", "image": "any", "command": ["python", "-m", "vae"], "space": SPACE, "trials": 3}
    return Sweep(**{**given, "objective": minimize("loss"), **settings})  # type: ignore[arg-type]  # any setting


@script(image="any", command=["python"])
def report(sweep: str) -> None:
    assert sweep


def test_a_sweep_runs_its_trials_side_by_side_with_all_that_a_trial_needs() -> None:
    with Workflow(generate_name="w-", entrypoint="vae") as w:
        vae()
    planned = read_workflow(w.to_dict(), "w-x1", "uid-1", {}).trials()
    assert [trial.delay for trial in planned] == [0.0, 0.0, 0.0]
    first = planned[0].step
    point = json.loads(first.env["SPECON_TRIAL_PARAMS"])
    assert first.args == (f"--lr={point['lr']!r}", f"--units={point['units']}")
    assert [trial.step.env["SPECON_TRIAL_ID"] for trial in planned] == [f"uid-1.vae.t00{n}" for n in range(3)]
    assert first.labels == {"hera-specon.io/sweep": "vae", "hera-specon.io/trial": "t000"}
    assert first.annotations == {
        "hera-specon.io/objective": "loss",
        "hera-specon.io/direction": "minimize",
        "hera-specon.io/retries": "3",
        "hera-specon.io/default-cpu": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
    }
    assert first.grace_s == 60.0
    assert first.retry is not None
    assert [first.retry.allows(failures, 1) for failures in (3, 4)] == [True, False]


def test_arrivals_delay_each_trial_by_its_own_time() -> None:
    with Workflow(generate_name="w-", entrypoint="vae") as w:
        vae(arrivals=every(50))
    program = read_workflow(w.to_dict(), "w-x1", "uid-1", {})
    assert [trial.delay for trial in program.trials()] == [0.0, 50.0, 100.0]
    run = Run(program)
    assert [delay.seconds for delay in run.now.delays] == [0.0, 50.0, 100.0]
    (started,) = run.end(run.now.delays[1].id.removeprefix("w-x1"))
    assert started.endswith("[1].trial")


def test_a_sweep_between_other_steps_runs_in_its_place_and_so_in_a_dag() -> None:
    with Workflow(generate_name="w-", entrypoint="main", arguments=Parameter(name="who", value="me")) as w:
        sweep = vae()
        with Steps(name="main"):
            sweep(name="search")
            report(arguments={"sweep": sweep.sweep_id})
    run = Run(read_workflow(w.to_dict(), "w-x1", "uid-1", {"who": "you"}))
    assert len(run.now.pods) == 3
    for step in run.now.pods:
        run.end(step.id.removeprefix("w-x1"))
    last = run.look().pods[0]
    assert last.template == "report"
    assert "uid-1.vae" in str(last.source)

    with Workflow(generate_name="w-", entrypoint="main") as w:
        sweep = vae()
        with DAG(name="main"):
            sweep(name="search") >> report(arguments={"sweep": "x"})
    assert len(Run(read_workflow(w.to_dict(), "w-x1", "uid-1", {})).now.pods) == 3


def test_a_trained_function_keeps_its_source() -> None:
    with Workflow(generate_name="w-", entrypoint="fit") as w:

        @Sweep.script(space={"lr": choice(0.1, 0.2)}, objective=minimize("loss"), search="grid", image="any")
        def fit(lr: float) -> None:
            assert lr

    steps = read_workflow(w.to_dict(), "w-x1", "uid-1", {}).expand({}, ()).pods
    assert ["assert lr" in str(step.source) for step in steps] == [True, True]


def test_the_volume_of_the_state_is_taken_and_another_has_a_folder_that_stands_in() -> None:
    for path, mounts in (("/mnt/specon", ()), ("/no/data", (Mount("/no/data", "disk"),))):
        with Workflow(generate_name="w-", entrypoint="vae") as w:
            vae(volumes=[ExistingVolume(name="disk", claim_name="disk", mount_path=path)])
        planned = read_workflow(w.to_dict(), "w-x1", "uid-1", {}).trials()
        assert [trial.step.mounts for trial in planned] == [mounts] * 3


def test_heras_own_container_needs_no_sweep() -> None:
    with Workflow(generate_name="w-", entrypoint="hello") as w:
        Container(name="hello", image="any", command=["echo"], args=["{{workflow.name}}"])
    assert read_workflow(w.to_dict(), "w-x1", "uid-1", {}).expand({}, ()).pods[0].args == ("w-x1",)


def test_a_step_comes_back_from_json_as_it_was() -> None:
    with Workflow(generate_name="w-", entrypoint="vae") as w:
        vae()
    kept = TypeAdapter(PodStep)
    for trial in read_workflow(w.to_dict(), "w-x1", "uid-1", {}).trials():
        assert kept.validate_json(kept.dump_json(trial.step)) == trial.step
