"""A policy put together from three systems: ProCon places, FlowCon shares, C-Balancer moves.

Each sees the same trials and has a kind of action of its own; which of them makes a difference is seen by leaving one
out: ``specon run workflows/composed_sweep.py --nodes 4 --policy default --policy procon --policy
procon+flowcon+cbalancer``.
"""

from hera.workflows import Resources, Workflow

from hera_specon import CBalancer, FlowCon, ProCon, Sweep, choice, every, log_uniform, minimize

with Workflow(generate_name="composed-sweep-", entrypoint="composed-sweep") as w:
    Sweep(
        name="composed-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.train"],
        space={
            "model": choice("vae-pytorch", "gru-pytorch", "mnist-pytorch", "lstm-crf-pytorch"),
            "lr": log_uniform(1e-3, 1e-2),
            "steps": choice(100, 200, 400),
        },
        trials=12,
        seed=4,
        objective=minimize("loss"),
        arrivals=every(5),
        policy=[ProCon(interval=10), FlowCon(interval=10), CBalancer(interval=10)],
        resources=Resources(cpu_request="50m"),
        state_claim="specon-state",
    )
