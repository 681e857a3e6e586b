"""Two trials whose program uses MLflow alone, as in its author's shell: it names an experiment, and makes its own runs.

The first fails once and begins again; the second saves, leaves by exit code 75, and goes on.
"""

import textwrap
from typing import Final

from hera.workflows import Workflow

from hera_specon import Sweep, choice, minimize
from tests.cluster.sweeps.descent_sweep import CLAIM, SMALL, STATE_ROOT

RATES: Final = (0.1, 0.2)
STEPS: Final = 6
EXPERIMENT: Final = "of the script"
_PROGRAM: Final = f"""
    import os, pathlib, sys, time
    import mlflow

    rate = float(sys.argv[1].partition("=")[2])
    mark = pathlib.Path("{STATE_ROOT}", "mark-" + os.environ["SPECON_TRIAL_ID"])
    begun = int(mark.read_text()) if mark.exists() else 0
    if rate < 0.15:
        mlflow.set_experiment("{EXPERIMENT}")
    with mlflow.start_run():
        mlflow.log_param("lr", str(rate) + "0")
        for step in range(begun, {STEPS}):
            mlflow.log_metric("loss", rate * (10 - step), step=step)
            time.sleep(1)
            if step == 2 and not mark.exists():
                mark.write_text("0" if rate < 0.15 else "3")
                os._exit(1 if rate < 0.15 else 75)
"""

with Workflow(generate_name="plain-", entrypoint="plain") as w:
    Sweep(
        name="plain",
        image="hera-specon/trainer:0.2.0",
        command=["python", "-c", textwrap.dedent(_PROGRAM)],
        space={"lr": choice(*RATES)},
        search="grid",
        objective=minimize("loss"),
        resources=SMALL,
        retries=1,
        state_claim=CLAIM,
        state_root=STATE_ROOT,
    )
