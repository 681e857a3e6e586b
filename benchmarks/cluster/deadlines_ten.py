"""Ten PyTorch models of three lengths, one every ten seconds, each with a deadline, for three nodes of 0.4 core."""

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, every, log_uniform, minimize

with Workflow(generate_name="deadlines-ten-", entrypoint="deadlines-ten") as w:
    Sweep(
        name="deadlines-ten",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(150, 300, 450),
        },
        trials=10,
        seed=1,
        objective=minimize("loss"),
        deadline=choice("2m", "3m", "4m"),
        arrivals=every(10),
        resources=Resources(cpu_request="80m", memory_request="400Mi"),
        state_claim="specon-state",
    )
