"""Fourteen PyTorch models of five kinds, one every four seconds: the first sweep of docs/experiments/payoff.md.

Made for four nodes of 0.45 core on a machine with two: about 200 CPU seconds, so about three minutes. As in any
sweep, most of a trial's gain comes in its first fifth; some trials then go on for long, others are short. Which
policy steers it is left to the command line, so that policies can be compared. ``SWEEP_SEED=3`` in the environment
draws other trials.
"""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, every, log_uniform, minimize

with Workflow(generate_name="demo-", entrypoint="demo") as w:
    Sweep(
        name="demo",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch", "lstm-crf-pytorch", "birnn-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(100, 200, 400, 600),
        },
        trials=14,
        seed=int(os.environ.get("SWEEP_SEED", "0")),
        objective=minimize("loss"),
        arrivals=every(4),
        # So little that requests never decide where a trial fits.
        resources=Resources(cpu_request="50m"),
        state_claim="specon-state",
    )
