"""Fourteen PyTorch models of three lengths, one every four seconds, each to be done soon."""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, every, log_uniform, minimize

SEED = int(os.environ.get("SWEEP_SEED", "1"))

with Workflow(generate_name="deadlines-", entrypoint="deadlines") as w:
    Sweep(
        name="deadlines",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(100, 200, 300),
        },
        trials=14,
        seed=SEED,
        objective=minimize("loss"),
        deadline=choice(30, 60, 90, 120),
        arrivals=every(4),
        resources=Resources(cpu_request="50m"),
        state_claim="specon-state",
    )
