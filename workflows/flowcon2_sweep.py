"""Twenty models of both frameworks on unequal nodes, placed, shared and moved by FlowCon 2.0.

A new trial starts where the least still grows per core, so that larger nodes take more of them.
"""

from hera.workflows import Resources, Workflow

from hera_specon import FlowCon2, Sweep, at_random, choice, log_uniform, minimize

with Workflow(generate_name="flowcon2-sweep-", entrypoint="flowcon2-sweep") as w:
    Sweep(
        name="flowcon2-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "mnist-pytorch", "lstm-crf-pytorch", "birnn-keras", "gru-keras"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(200, 400, 800),
        },
        trials=20,
        seed=3,
        objective=minimize("loss"),
        arrivals=at_random(within=300, seed=3),
        policy=FlowCon2(alpha=0.05, interval=20),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
