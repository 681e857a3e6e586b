"""Twenty models drawn at random from both frameworks, within 300 seconds, steered by SpeCon (thesis ch. 6.2.3).

The model is a hyperparameter like any other: one image and one command train them all.
"""

from hera.workflows import Resources, Workflow

from hera_specon import SpeCon, Sweep, at_random, choice, log_uniform, minimize

MODELS = ("vae", "gru", "birnn", "rnn", "dynamic-rnn")  # table 6.3

with Workflow(generate_name="mixed-sweep-", entrypoint="mixed-sweep") as w:
    Sweep(
        name="mixed-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice(*(f"{model}-{framework}" for model in MODELS for framework in ("pytorch", "keras"))),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(500, 1000, 2000),
        },
        trials=20,
        seed=1,
        objective=minimize("loss"),
        arrivals=at_random(within=300, seed=1),
        policy=SpeCon(alpha=0.01, interval=30),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
