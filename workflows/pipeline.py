"""A sweep as a step of a pipeline: prepare the data, search, train the best again on all of it, register the model.

``w`` runs it once, ``nightly`` every night; each run of it is a sweep of its own. What flows from step to step are
output parameters, so no artifact repository is needed. All of it reaches the programs as arguments, never as code.
"""

from hera.workflows import Container, CronWorkflow, EmptyDirVolume, Env, Parameter, Resources, Steps, Workflow
from hera.workflows.models import ValueFrom

from hera_specon import Sweep, log_uniform, minimize

IMAGE = "hera-specon/trainer:0.2.0"
JOB = ["python", "-m", "workflows.jobs.classifier"]
OUT = "/var/run/pipeline"
MLFLOW = "{{workflow.parameters.mlflow}}"


def step(name: str, *inputs: str, output: str | None = None, args: list[str]) -> Container:
    """Return the template of a step that is no sweep; its program writes the output into a file."""
    return Container(
        name=name,
        image=IMAGE,
        command=[*JOB, name],
        args=args if output is None else [*args, f"--out={OUT}/{output}"],
        env=[Env(name="MLFLOW_TRACKING_URI", value=MLFLOW), Env(name="HOME", value="/tmp")],  # noqa: S108 - of the pod
        inputs=[Parameter(name=given) for given in inputs],
        outputs=[] if output is None else [Parameter(name=output, value_from=ValueFrom(path=f"{OUT}/{output}"))],
        volumes=None if output is None else [EmptyDirVolume(name="out", mount_path=OUT)],
        resources=Resources(cpu_request="100m", memory_request="256Mi"),
    )


def pipeline(workflow: Workflow) -> Workflow:
    """Return ``workflow`` with the steps of the pipeline."""
    with workflow:
        prepare = step("prepare", output="data", args=[])
        search = Sweep(
            name="search",
            image=IMAGE,
            command=[*JOB, "train"],
            args=["--data={{inputs.parameters.data}}"],
            inputs=[Parameter(name="data")],
            space={"lr": log_uniform(1e-4, 1e-1), "alpha": log_uniform(1e-6, 1e-2)},
            trials=6,
            seed=2,
            objective=minimize("loss"),
            resources=Resources(cpu_request="50m"),
            state_claim="specon-state",
            mlflow_tracking_uri=MLFLOW,
        )
        retrain = step(
            "retrain",
            *("data", "params"),
            output="model",
            args=["--data={{inputs.parameters.data}}", "--params={{inputs.parameters.params}}"],
        )
        register = step(
            "register",
            *("model", "value"),
            args=["--name=digits", "--model={{inputs.parameters.model}}", "--value={{inputs.parameters.value}}"],
        )
        with Steps(name="pipeline"):
            prepare()
            data = "{{steps.prepare.outputs.parameters.data}}"
            search(arguments={"data": data})
            retrain(arguments={"data": data, "params": search.best.params})
            model = "{{steps.retrain.outputs.parameters.model}}"
            register(arguments={"model": model, "value": search.best.value})
    return workflow


ARGUMENTS = {"mlflow": "http://mlflow:5000"}
w = pipeline(Workflow(generate_name="pipeline-", entrypoint="pipeline", arguments=ARGUMENTS))
nightly = pipeline(CronWorkflow(name="pipeline", schedules=["0 3 * * *"], entrypoint="pipeline", arguments=ARGUMENTS))
