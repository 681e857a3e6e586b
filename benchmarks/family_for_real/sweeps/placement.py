"""Twelve PyTorch models of five kinds and three lengths within a minute, for nodes of a third of a core."""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, at_random, choice, log_uniform, minimize

SEED = int(os.environ.get("SWEEP_SEED", "1"))

with Workflow(generate_name="placement-", entrypoint="placement") as w:
    Sweep(
        name="placement",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch", "lstm-crf-pytorch", "birnn-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(80, 160, 320),
        },
        trials=12,
        seed=SEED,
        objective=minimize("loss"),
        arrivals=at_random(within=60, seed=SEED),
        resources=Resources(cpu_request="20m"),
        state_claim="specon-state",
    )
