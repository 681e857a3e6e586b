"""Twenty variational autoencoders, one every 50 seconds, steered by SpeCon (thesis ch. 6.2.2, figure 6.16).

``specon run workflows/vae_sweep.py`` runs it on this machine, ``specon submit workflows/vae_sweep.py`` on Argo.
"""

from hera.workflows import Resources, Workflow

from hera_specon import SpeCon, Sweep, every, log_uniform, minimize

with Workflow(generate_name="vae-sweep-", entrypoint="vae-sweep") as w:
    Sweep(
        name="vae-sweep",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-m", "workflows.jobs.pytorch.vae", "--steps=1500"],
        space={"lr": log_uniform(3e-4, 1e-2)},
        trials=20,
        seed=1,
        objective=minimize("loss"),
        arrivals=every(50),
        policy=SpeCon(alpha=0.01, interval=30),
        resources=Resources(cpu_request="100m"),
        state_claim="specon-state",
    )
