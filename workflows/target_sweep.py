"""Six variational autoencoders that shall reach the same loss: who is there makes room for who is not (TRADL)."""

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, Tradl, log_uniform, minimize

with Workflow(generate_name="target-sweep-", entrypoint="target-sweep") as w:
    Sweep(
        name="target-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.vae", "--steps=300"],
        space={"lr": log_uniform(3e-4, 1e-2)},
        trials=6,
        seed=1,
        objective=minimize("loss"),
        target=30.0,
        policy=Tradl(interval=10),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
