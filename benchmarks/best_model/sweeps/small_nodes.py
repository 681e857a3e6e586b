"""Thirty configurations of a network that reads half-shown digits, submitted all at once; eight fit at a time.

Made for four nodes of 0.4 core: a request of a fifth of a core lets two trials onto a node. About 300 CPU seconds if
all are trained to their end, on a machine on which ``SpeedProbe`` takes 5 ms; up to twice that where the processor is
slow with subnormal numbers. Validation loss decides; the learning rate follows a cosine.
"""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, integer, log_uniform, minimize, uniform

with Workflow(generate_name="best-model-", entrypoint="best-model") as w:
    Sweep(
        name="best-model",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.tuned"],
        args=["--data=partial-digits", "--schedule=cosine", "--steps=60", "--work=300"],
        space={
            "lr": log_uniform(1e-4, 0.3),
            "width": integer(8, 256, log=True),
            "depth": integer(1, 3),
            "batch_size": choice(16, 32, 64, 128),
            "weight_decay": log_uniform(1e-6, 1e-2),
            "dropout": uniform(0.0, 0.5),
            "optimizer": choice("adam", "sgd"),
            "momentum": uniform(0.5, 0.98),
        },
        trials=30,
        seed=int(os.environ.get("SWEEP_SEED", "1")),
        objective=minimize("loss"),
        resources=Resources(cpu_request="200m"),
        state_claim="specon-state",
    )
