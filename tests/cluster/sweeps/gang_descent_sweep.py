"""One light trial of two workers on a cluster."""

from typing import Any, Final

from hera.workflows import Parameter, Workflow
from hera.workflows.volume import ConfigMapVolume

from hera_specon import Sweep, choice, minimize
from tests.cluster.sweeps.descent_sweep import CLAIM, JOBS, NAME, SMALL, STATE_ROOT

RATES: Final = (0.02,)
WORKERS: Final = 2
SETTINGS: Final = {"steps": "200", "pause-ms": "250"}


def gang(**settings: Any) -> Workflow:  # noqa: ANN401 - a sweep's own
    """Return the workflow, with more ``settings`` of its sweep."""
    with Workflow(
        generate_name=f"{NAME}-",
        entrypoint=NAME,
        arguments=[Parameter(name=name, value=value) for name, value in SETTINGS.items()],
    ) as made:
        Sweep(
            name=NAME,
            image="hera-specon/trainer:0.2.0",
            command=["python", "/jobs/gang_descent.py"],
            args=[f"--{name}={{{{workflow.parameters.{name}}}}}" for name in SETTINGS],
            space={"lr": choice(*RATES)},
            search="grid",
            workers=WORKERS,
            objective=minimize("loss"),
            resources=SMALL,
            retries=3,
            grace=10,
            state_claim=CLAIM,
            state_root=STATE_ROOT,
            volumes=[ConfigMapVolume(name=JOBS, mount_path="/jobs")],
            **settings,
        )
    return made


w = gang()
