"""Ten variational autoencoders, one every 15 seconds: ``workflows/vae_sweep.py`` for small nodes and little time."""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, every, log_uniform, minimize

with Workflow(generate_name="vae-ten-", entrypoint="vae-ten") as w:
    Sweep(
        name="vae-ten",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.vae", "--steps=620"],
        space={"lr": log_uniform(3e-4, 1e-2)},
        trials=10,
        seed=int(os.environ.get("SWEEP_SEED", "1")),
        objective=minimize("loss"),
        arrivals=every(15),
        resources=Resources(cpu_request="80m", memory_request="400Mi"),
        state_claim="specon-state",
    )
