"""Thirty configurations of boosted trees that guess visits to a doctor, for all cores of one machine."""

import os

from hera.workflows import Workflow

from hera_specon import Sweep, integer, log_uniform, minimize, uniform

with Workflow(generate_name="best-model-", entrypoint="best-model") as w:
    Sweep(
        name="best-model",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "benchmarks.best_model.jobs.trees"],
        args=["--steps=60", "--work=20"],
        space={
            "eta": log_uniform(0.005, 0.3),
            "depth": integer(2, 8),
            "min_child_weight": log_uniform(0.1, 30),
            "columns": uniform(0.1, 1.0),
            "penalty": log_uniform(0.01, 30),
            "least_gain": uniform(0.0, 2.0),
        },
        trials=30,
        seed=int(os.environ.get("SWEEP_SEED", "1")),
        objective=minimize("loss"),
        state_claim="specon-state",
    )
