"""Twelve autoencoders whose hyperparameters a search finds as they start; six fit at a time.

Made for a policy that suspends and stops:

    python -m benchmarks.cluster.sweep --file benchmarks/cluster/search_twelve.py --policy promote:rungs=best+ahead
"""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, integer, log_uniform, minimize, tpe

with Workflow(generate_name="search-twelve-", entrypoint="search-twelve") as w:
    Sweep(
        name="search-twelve",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.vae", "--steps=300"],
        space={"lr": log_uniform(1e-4, 3e-2), "hidden": integer(16, 256, log=True)},
        search=tpe(n_startup_trials=4),
        trials=12,
        seed=int(os.environ.get("SWEEP_SEED", "1")),
        objective=minimize("loss"),
        resources=Resources(cpu_request="180m", memory_request="400Mi"),
        state_claim="specon-state",
    )
