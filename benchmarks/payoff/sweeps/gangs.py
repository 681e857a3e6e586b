"""Eight PyTorch models within two minutes, each trained by one to four workers. Two gangs of four fit at a time.

Made for four nodes of 0.4 core: two workers of 0.15 core fit on each.
"""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, at_random, choice, log_uniform, minimize

SEED = int(os.environ.get("SWEEP_SEED", "1"))

with Workflow(generate_name="gangs-", entrypoint="gangs") as w:
    Sweep(
        name="gangs",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train", "--model=elastic-pytorch"],
        space={"lr": log_uniform(3e-4, 3e-3), "steps": choice(40, 80, 160)},
        trials=8,
        seed=SEED,
        objective=minimize("loss"),
        workers=(1, 4),
        arrivals=at_random(within=120, seed=SEED),
        resources=Resources(cpu_request="150m"),
        state_claim="specon-state",
    )
