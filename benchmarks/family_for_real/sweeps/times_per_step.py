"""Six networks of two sizes on one node, each with a time that a step shall take."""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, log_uniform, minimize

SEED = int(os.environ.get("SWEEP_SEED", "1"))

with Workflow(generate_name="times-per-step-", entrypoint="times-per-step") as w:
    Sweep(
        name="times-per-step",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train", "--steps=600"],
        space={"model": choice("vae-pytorch", "gru-pytorch"), "lr": log_uniform(1e-3, 1e-2)},
        trials=6,
        seed=SEED,
        objective=minimize("loss"),
        seconds_per_step=choice(0.12, 0.3, 0.6),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
