"""One trial of one to three workers; a script says how many. It trains a classifier of digits in 150 steps."""

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, minimize

STEPS = 150
RATES = (1e-3,)

with Workflow(generate_name="size-", entrypoint="size") as w:
    Sweep(
        name="size",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train", "--model=elastic-pytorch", f"--steps={STEPS}"],
        space={"lr": choice(*RATES)},
        search="grid",
        objective=minimize("loss"),
        workers=(1, 3),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
