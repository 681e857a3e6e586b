"""Two variational autoencoders that keep their checkpoints in a bucket."""

from typing import Final

from hera.workflows import Parameter, Resources, Workflow

from hera_specon import Sweep, choice, minimize
from tests.cluster.sweeps.bucket import IN_BUCKET

NAME: Final = "bucket-vae"
RATES: Final = (0.002, 0.001)
STEPS: Final = 200

with Workflow(generate_name=f"{NAME}-", entrypoint=NAME, arguments=[Parameter(name="steps", value=str(STEPS))]) as w:
    Sweep(
        name=NAME,
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.vae"],
        args=["--steps={{workflow.parameters.steps}}"],
        space={"lr": choice(*RATES)},
        search="grid",
        objective=minimize("loss"),
        resources=Resources(cpu_request="100m", memory_request="400Mi"),
        grace=20,
        **IN_BUCKET,
    )
