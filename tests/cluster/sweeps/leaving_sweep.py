"""Two trials whose program leaves as if it had been asked to, and comes no further: there is no licence for it."""

from hera.workflows import HostPathVolume, Resources, Workflow

from hera_specon import Sweep, choice, minimize

RATES = (0.1, 0.2)

with Workflow(generate_name="leaving-", entrypoint="leaving") as w:
    Sweep(
        name="leaving",
        image="hera-specon.io/shell:1",
        # Each attempt says something else, so that it is not given up for failing twice alike.
        command=["sh", "-c", "echo 'step 0'; echo \"no licence: $(cat /proc/uptime)\"; exit 75"],
        space={"lr": choice(*RATES)},
        search="grid",
        objective=minimize("loss"),
        retries=0,
        resources=Resources(cpu_request="50m"),
        state_volume=HostPathVolume(name="state", path="/tmp"),  # noqa: S108 - nothing is kept there
    )
