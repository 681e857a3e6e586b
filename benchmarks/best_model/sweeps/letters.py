"""Thirty configurations of a small transformer that guesses letters, for all cores of one machine."""

import os

from hera.workflows import Workflow

from hera_specon import Sweep, choice, log_uniform, minimize, uniform

with Workflow(generate_name="best-model-", entrypoint="best-model") as w:
    Sweep(
        name="best-model",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "benchmarks.best_model.jobs.letters"],
        args=["--steps=60", "--work=10"],
        space={
            "lr": log_uniform(1e-4, 0.05),
            "width": choice(16, 32, 64),
            "layers": choice(1, 2),
            "batch_size": choice(8, 16, 32),
            "weight_decay": log_uniform(1e-6, 1e-2),
            "dropout": uniform(0.0, 0.3),
            "optimizer": choice("adam", "sgd"),
            "momentum": uniform(0.5, 0.98),
        },
        trials=30,
        seed=int(os.environ.get("SWEEP_SEED", "1")),
        objective=minimize("loss"),
        state_claim="specon-state",
    )
