"""Four networks that learn handwritten digits, each trained by one to three workers, as there is room."""

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, log_uniform, minimize

with Workflow(generate_name="elastic-sweep-", entrypoint="elastic-sweep") as w:
    Sweep(
        name="elastic-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train", "--model=elastic-pytorch"],
        space={"lr": log_uniform(3e-4, 3e-3), "steps": choice(60, 100)},
        trials=4,
        seed=1,
        objective=minimize("loss"),
        workers=(1, 3),
        policy="dragon",
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
