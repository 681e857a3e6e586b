"""Two trials of a shell's script, in an image without Python, that prints its metrics and saves what it needs."""

import textwrap
from typing import Final

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, minimize, printed
from tests.cluster.sweeps.descent_sweep import CLAIM, NAME, STATE_ROOT

RATES: Final = (1, 2)
STEPS: Final = 60
IMAGE: Final = "hera-specon.io/shell:1"
READER: Final = "hera-specon/trainer:0.2.0"
_PROGRAM: Final = """
    saved=$SPECON_STATE_ROOT/$SPECON_TRIAL_ID.saved
    i=0
    [ -f "$saved" ] && i=$(cat "$saved")
    trap 'echo $i > "$saved"; exit 75' TERM
    while [ $i -lt STEPS ]; do
      echo "epoch $i: loss=$((LR * (100 - i))) acc=0.5"
      i=$((i + 1))
      sleep 0.5
    done
"""

with Workflow(generate_name=f"{NAME}-", entrypoint=NAME) as w:
    Sweep(
        name=NAME,
        image=IMAGE,
        command=["sh", "-c", textwrap.dedent(_PROGRAM).replace("STEPS", str(STEPS)).replace("LR", "${1#--lr=}"), "sh"],
        space={"lr": choice(*RATES)},
        search="grid",
        objective=minimize("loss"),
        metrics=printed(r"epoch (?P<step>\d+): loss=(?P<loss>\S+) acc=(?P<acc>\S+)", reader=READER),
        resources=Resources(cpu_request="50m", memory_request="64Mi"),
        retries=1,
        grace=20,
        state_claim=CLAIM,
        state_root=STATE_ROOT,
    )
