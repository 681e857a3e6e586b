"""Twenty-four PyTorch models of five kinds and four lengths, all submitted at once; sixteen fit at a time.

Made for four nodes of 0.4 core: a request of a tenth of a core lets four trials onto a node. About 180 CPU seconds.
"""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, log_uniform, minimize

SEED = int(os.environ.get("SWEEP_SEED", "1"))

with Workflow(generate_name="all-at-once-", entrypoint="all-at-once") as w:
    Sweep(
        name="all-at-once",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch", "lstm-crf-pytorch", "birnn-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(60, 120, 180, 300),
        },
        trials=24,
        seed=SEED,
        objective=minimize("loss"),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
