"""Ten PyTorch models of different length, each to be done within two, five or ten minutes of its submission.

A deadline stands in the place of a CPU request: the policy measures how fast each trial trains and gives it the least
share that is enough. Those that can't be done in time say so early, in ``specon status`` and as MLflow's tag
``specon.outlook``.
"""

from hera.workflows import Resources, Workflow

from hera_specon import Deadline, Sweep, choice, every, log_uniform, minimize

with Workflow(generate_name="deadline-sweep-", entrypoint="deadline-sweep") as w:
    Sweep(
        name="deadline-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(100, 200, 400),
        },
        trials=10,
        seed=2,
        objective=minimize("loss"),
        deadline=choice("2m", "5m", "10m"),
        arrivals=every(5),
        policy=Deadline(),
        # A start, until its pace is known.
        resources=Resources(cpu_request="50m"),
        state_claim="specon-state",
    )
