"""The sweep of ``make demo``: small networks of very unlike lengths, in numpy, about a minute on any machine.

``DEMO_PACE`` says how many passes over the data a core makes in a second (``python -m workflows.jobs.digits --pace``
measures it). The trials are sized by that and by the number of cores, so that the sweep keeps all cores busy for the
better part of a minute. As in any sweep, some trials are ten times as long as others.
"""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, log_uniform, minimize

CORES = len(os.sched_getaffinity(0))
PACE = float(os.environ.get("DEMO_PACE", "300"))
TRIALS = min(64, 8 * CORES)
STEPS = 10, 20, 40, 100
SECONDS = 45
"""Of all cores together, for all trials."""
PASSES = max(1, round(PACE * SECONDS * CORES / TRIALS / (sum(STEPS) / len(STEPS))))
"""Over the data, in each step."""

with Workflow(generate_name="demo-", entrypoint="demo") as w:
    Sweep(
        name="demo",
        image="hera-specon/trainer:0.1.0",
        command=["python", "-m", "workflows.jobs.digits", f"--passes={PASSES}"],
        space={"lr": log_uniform(1e-2, 1), "hidden": choice(32, 128), "steps": choice(*STEPS)},
        trials=TRIALS,
        seed=3,
        objective=minimize("loss"),
        # So little that requests never decide where a trial fits.
        resources=Resources(cpu_request="50m"),
        state_claim="specon-state",
    )
