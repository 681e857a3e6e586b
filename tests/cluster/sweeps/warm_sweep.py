"""Six light trials that a search chooses, which learns from all sweeps of its experiment."""

from typing import Final

from hera.workflows import Workflow

from hera_specon import Sweep, minimize, tpe, uniform
from tests.cluster.sweeps.descent_sweep import SMALL, VOLUME

NAME: Final = "warm"
RATES: Final = (0.0,) * 6
PROGRAM: Final = """
import os
from mlflow_hooks import trial
x = float(os.environ["SPECON_PARAM_x"])
with trial() as t:
    for step in t.steps(3):
        t.log(loss=(x - 4) ** 2 + 2 - step)
"""

with Workflow(generate_name=f"{NAME}-", entrypoint=NAME) as w:
    Sweep(
        name=NAME,
        image="hera-specon/trainer:0.2.0",
        command=["python", "-c", PROGRAM],
        space={"x": uniform(-10, 10)},
        flags={"x": None},
        search=tpe(n_startup_trials=5),
        trials=len(RATES),
        objective=minimize("loss"),
        after="same experiment",
        resources=SMALL,
        grace=10,
        state_claim=VOLUME["state_claim"],
        state_root=VOLUME["state_root"],
    )
