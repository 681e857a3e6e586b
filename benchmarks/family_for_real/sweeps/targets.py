"""Six variational autoencoders on one node; each shall reach a loss that takes a part of its steps."""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, every, log_uniform, minimize

SEED = int(os.environ.get("SWEEP_SEED", "1"))

with Workflow(generate_name="targets-", entrypoint="targets") as w:
    Sweep(
        name="targets",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.vae", "--steps=300"],
        space={"lr": log_uniform(3e-4, 1e-2)},
        trials=6,
        seed=SEED,
        objective=minimize("loss"),
        target=20.0,
        arrivals=every(5),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
