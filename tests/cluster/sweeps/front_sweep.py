"""Six light trials of two objectives, which a search chooses and a constraint bounds."""

from typing import Final

from hera.workflows import Workflow

from hera_specon import Sweep, maximize, minimize, sampler, subject_to, uniform
from tests.cluster.sweeps.descent_sweep import SMALL, VOLUME

NAME: Final = "front"
RATES: Final = (0.0,) * 6
PROGRAM: Final = """
import os
from mlflow_hooks import trial
x = float(os.environ["SPECON_PARAM_x"])
with trial() as t:
    for step in t.steps(3):
        t.log(loss=x * x + 2 - step)
    t.log(speed=-(x - 5) ** 2, memory_mb=100 if x > 4 else 50)
"""

with Workflow(generate_name=f"{NAME}-", entrypoint=NAME) as w:
    Sweep(
        name=NAME,
        image="hera-specon/trainer:0.2.0",
        command=["python", "-c", PROGRAM],
        space={"x": uniform(-10, 10)},
        flags={"x": None},
        search=sampler("NSGAIISampler", population_size=4),
        trials=len(RATES),
        objectives=[minimize("loss"), maximize("speed")],
        constraints=[subject_to("memory_mb", "<=", 90)],
        resources=SMALL,
        grace=10,
        state_claim=VOLUME["state_claim"],
        state_root=VOLUME["state_root"],
    )
