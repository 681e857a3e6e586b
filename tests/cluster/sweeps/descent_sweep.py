"""Four light trials on a cluster. What differs between tests are parameters of the workflow."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hera.workflows import Parameter, Resources, Workflow
from hera.workflows.volume import ConfigMapVolume

from hera_specon import Sweep, choice, minimize
from hera_specon.settings import Arrivals

NAME: Final = "descent"
JOBS: Final = "jobs"
CLAIM: Final = "specon-state"
STATE_ROOT: Final = "/mnt/specon"
VOLUME: Final = {"state_claim": CLAIM, "state_root": STATE_ROOT}
# The first converges in a few steps, the others go on improving to their end.
RATES: Final = (0.3, 0.02, 0.015, 0.01)
SMALL: Final = Resources(cpu_request="50m", memory_request="200Mi")
SETTINGS: Final = {"steps": "120", "pause-ms": "250", "work-ms": "0", "deaf": "no"}


def descent(
    rates: Sequence[float],
    deadlines: Sequence[str] | None = None,
    arrivals: Arrivals | None = None,
    resources: Resources = SMALL,
    retries: int = 3,
    settings: Mapping[str, Any] = VOLUME,
) -> Workflow:
    """Return a workflow with a trial for each of these learning rates. Each trial may fail ``retries`` times.

    They are to be done within ``deadlines``, if any, and are submitted all at once where there are no ``arrivals``.
    ``settings`` are more of the sweep: where its trials keep their checkpoints, and which nodes are for them.
    """
    with Workflow(
        generate_name=f"{NAME}-",
        entrypoint=NAME,
        arguments=[Parameter(name=name, value=value) for name, value in SETTINGS.items()],
    ) as made:
        _sweep(rates, deadlines, arrivals, resources, retries, settings)
    return made


def _sweep(
    rates: Sequence[float],
    deadlines: Sequence[str] | None,
    arrivals: Arrivals | None,
    resources: Resources,
    retries: int,
    settings: Mapping[str, Any],
) -> None:
    Sweep(
        name=NAME,
        image="hera-specon/trainer:0.2.0",
        command=["python", "/jobs/descent.py"],
        args=[f"--{name}={{{{workflow.parameters.{name}}}}}" for name in SETTINGS],
        space={"lr": choice(*rates)},
        search="grid",
        objective=minimize("loss"),
        resources=resources,
        retries=retries,
        deadline=None if deadlines is None else list(deadlines),
        arrivals=arrivals,
        grace=10,
        volumes=[ConfigMapVolume(name=JOBS, mount_path="/jobs")],
        **settings,
    )


w = descent(RATES)
