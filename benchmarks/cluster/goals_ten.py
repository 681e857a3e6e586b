"""Ten variational autoencoders, each with a loss that is good enough and a time that a step shall take."""

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, every, log_uniform, minimize

with Workflow(generate_name="goals-ten-", entrypoint="goals-ten") as w:
    Sweep(
        name="goals-ten",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.vae", "--steps=620"],
        space={"lr": log_uniform(1e-3, 1e-2)},
        trials=10,
        seed=1,
        objective=minimize("loss"),
        target=20,
        seconds_per_step=choice(0.3, 0.6, 1.2),
        arrivals=every(5),
        resources=Resources(cpu_request="80m", memory_request="400Mi"),
        state_claim="specon-state",
    )
