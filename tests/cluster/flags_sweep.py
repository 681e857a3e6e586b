"""A sweep whose trials say which words they got: some depend on hyperparameters, and are left out or come in pieces."""

from hera.workflows import HostPathVolume, Resources, Workflow

from hera_specon import Sweep, choice, minimize

TRUTHS = (True, False)

with Workflow(generate_name="flags-", entrypoint="flags") as w:
    Sweep(
        name="flags",
        image="hera-specon.io/shell:1",
        command=["sh", "-c", "printf '<%s>' \"$@\"", "program"],
        space={"lr": choice(0.1), "amp": choice(*TRUTHS), "hidden": choice("64 32")},
        flags={"amp": "--amp", "hidden": ["--hidden", "{*}"]},
        search="grid",
        objective=minimize("loss"),
        retries=0,
        resources=Resources(cpu_request="50m"),
        state_volume=HostPathVolume(name="state", path="/tmp"),  # noqa: S108 - nothing is kept there
    )
