"""Fourteen networks of unlike lengths, one every four seconds, for nodes of 0.4 core: about 100 CPU seconds."""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, every, log_uniform, minimize

with Workflow(generate_name="beside-others-", entrypoint="beside-others") as w:
    Sweep(
        name="beside-others",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.digits"],
        space={"lr": log_uniform(1e-2, 1e-1), "steps": choice(15, 30, 60, 100)},
        trials=14,
        seed=int(os.environ.get("SWEEP_SEED", "1")),
        objective=minimize("loss"),
        arrivals=every(4),
        resources=Resources(cpu_request="50m"),
        state_claim="specon-state",
    )
