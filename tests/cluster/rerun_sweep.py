"""Two trials, and one of them can be made to fail halfway, for what people do with a workflow that failed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hera.workflows import Parameter, Resources, Workflow

from hera_specon import Sweep, choice, minimize

STEPS = 40
FAILS_AT = 20
RATES = (0.3, 0.02)
"""The second one fails where the parameter ``fails`` is ``yes``."""
CLAIM = "specon-state"


def rerun(state: Mapping[str, Any]) -> Workflow:
    """Return the workflow; ``state`` has the settings of the sweep that say where its trials keep their checkpoints."""
    with Workflow(generate_name="rerun-", entrypoint="rerun", arguments=Parameter(name="fails", value="yes")) as made:
        Sweep(
            name="rerun",
            image="hera-specon/trainer:0.2.0",
            command=["python", "-c", Path(__file__).with_name("rerun_job.py").read_text()],
            args=[f"--steps={STEPS}", f"--fails-at={FAILS_AT}", "--fails={{workflow.parameters.fails}}"],
            space={"lr": choice(*RATES)},
            search="grid",
            objective=minimize("loss"),
            resources=Resources(cpu_request="80m", memory_request="200Mi"),
            retries=0,
            **state,
        )
    return made


w = rerun({"state_claim": CLAIM})
