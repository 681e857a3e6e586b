"""Two trials whose program has a mistake, so that each attempt fails as the one before."""

from hera.workflows import HostPathVolume, Resources, Workflow

from hera_specon import Sweep, choice, minimize

RATES = (0.1, 0.2)
WORDS = "there is no layer conv9"
CODE = 3

with Workflow(generate_name="broken-", entrypoint="broken") as w:
    Sweep(
        name="broken",
        image="hera-specon.io/shell:1",
        command=["sh", "-c", f"echo 'step 0'; echo '{WORDS}'; exit {CODE}"],
        space={"lr": choice(*RATES)},
        search="grid",
        objective=minimize("loss"),
        retries=5,
        resources=Resources(cpu_request="50m"),
        state_volume=HostPathVolume(name="state", path="/tmp"),  # noqa: S108 - nothing is kept there
    )
