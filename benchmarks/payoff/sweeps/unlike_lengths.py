"""Twenty PyTorch models of five kinds within 40 seconds; two train for about six times as long as the others.

Made for four nodes of 0.4 core: about 160 CPU seconds. Two sweeps, so that every seed draws just two long trials.
"""

import os

from hera.workflows import Resources, Steps, Workflow

from hera_specon import Sweep, at_random, choice, integer, log_uniform, minimize

SEED = int(os.environ.get("SWEEP_SEED", "1"))
PARTS = (("short", 18, integer(60, 180), SEED), ("long", 2, integer(600, 800), 1000 + SEED))
"""Name, number of trials, their steps, and the seed that draws them."""

with Workflow(generate_name="unlike-lengths-", entrypoint="main") as w:
    sweeps = [
        Sweep(
            name=name,
            image="hera-specon/trainer:0.2.0",
            command=["python", "-m", "workflows.jobs.train"],
            space={
                "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch", "lstm-crf-pytorch", "birnn-pytorch"),
                "lr": log_uniform(1e-3, 1e-2),
                "steps": steps,
            },
            trials=trials,
            seed=seed,
            objective=minimize("loss"),
            arrivals=at_random(within=40, seed=seed),
            resources=Resources(cpu_request="50m"),
            state_claim="specon-state",
        )
        for name, trials, steps, seed in PARTS
    ]
    with Steps(name="main") as main, main.parallel():
        for sweep in sweeps:
            sweep(name=sweep.name)
