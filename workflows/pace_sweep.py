"""Six networks of two sizes, each with a time that a step shall take; shares move towards these times (DQoES)."""

from hera.workflows import Resources, Workflow

from hera_specon import DQoES, Sweep, choice, log_uniform, minimize

with Workflow(generate_name="pace-sweep-", entrypoint="pace-sweep") as w:
    Sweep(
        name="pace-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train", "--steps=200"],
        space={"model": choice("vae-pytorch", "gru-pytorch"), "lr": log_uniform(1e-3, 1e-2)},
        trials=6,
        seed=1,
        objective=minimize("loss"),
        seconds_per_step=choice(0.2, 0.4, 0.8),
        policy=DQoES(interval=10),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
