"""The sweep of ``make demo``: small networks of very unlike lengths, in numpy, about a minute on any machine.

``python -m workflows.jobs.digits --size`` measures the machine and prints the two variables that size it:
``DEMO_TRIALS``, and ``DEMO_PASSES`` over the data in each step. As in any sweep, some trials are ten times as long as
others.
"""

import os

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, log_uniform, minimize
from workflows.jobs.digits import STEPS

with Workflow(generate_name="digits-", entrypoint="digits") as w:
    Sweep(
        name="digits",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.digits", f"--passes={os.environ.get('DEMO_PASSES', '30')}"],
        space={"lr": log_uniform(1e-2, 1), "hidden": choice(32, 128), "steps": choice(*STEPS)},
        trials=int(os.environ.get("DEMO_TRIALS", "16")),
        seed=3,
        objective=minimize("loss"),
        # So little that requests never decide where a trial fits.
        resources=Resources(cpu_request="50m"),
        state_claim="specon-state",
    )
