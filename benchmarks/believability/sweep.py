"""Eight PyTorch models of five kinds, one every five seconds: 70 CPU seconds, for nodes of a quarter of a core."""

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, every, log_uniform, minimize

with Workflow(generate_name="believable-", entrypoint="believable") as w:
    Sweep(
        name="believable",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch", "lstm-crf-pytorch", "birnn-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(80, 120, 240),
        },
        trials=8,
        seed=3,
        objective=minimize("loss"),
        arrivals=every(5),
        resources=Resources(cpu_request="20m"),
        state_claim="specon-state",
    )
