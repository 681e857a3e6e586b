"""A sweep without training, for what needs only pods: each trial does what the parameter ``does`` says."""

from hera.workflows import HostPathVolume, Parameter, Resources, Workflow

from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="shell-", entrypoint="shell", arguments=Parameter(name="does", value="exit 0")) as w:
    Sweep(
        name="shell",
        image="hera-specon.io/shell:1",
        command=["sh", "-c", "{{workflow.parameters.does}}"],
        space={"lr": choice(0.1, 0.2)},
        search="grid",
        objective=minimize("loss"),
        retries=0,
        resources=Resources(cpu_request="50m"),
        state_volume=HostPathVolume(name="state", path="/tmp"),  # noqa: S108 - nothing is kept there
    )
