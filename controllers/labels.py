"""What a sweep's workflow and whoever reads it have agreed on: names only.

A workflow manifest that uses these names is a sweep, whether Hera wrote it or a person did.
"""

from typing import Final

LABEL_SWEEP: Final = "hera-specon.io/sweep"
"""On a trial's pod: name of its sweep, unique in the workflow."""
LABEL_TRIAL: Final = "hera-specon.io/trial"
"""On a trial's pod: number of the trial in its sweep, such as ``t007``."""

ANNOTATION_OBJECTIVE: Final = "hera-specon.io/objective"
"""On a trial's pod: name of the metric that says how good the model is."""
ANNOTATION_DIRECTION: Final = "hera-specon.io/direction"
"""On a trial's pod: ``minimize`` or ``maximize``."""
ANNOTATION_POLICY: Final = "hera-specon.io/policy"
"""On a trial's pod: what steers the sweep, as a policy spec string; absent where its author left that open."""
ANNOTATION_WORKERS: Final = "hera-specon.io/workers"
"""On a trial's pod: how many workers a trial has; one where absent."""

ANNOTATION_ADOPTED: Final = "hera-specon.io/adopted"
"""On a Workflow: its own uid, once a controller steers it. Argo copies annotations when it resubmits a workflow, so the
uid of another one means nothing."""
ANNOTATION_FIRST_NODES: Final = "hera-specon.io/first-nodes"
"""On a Workflow: the node of each trial's first attempt, as a JSON object of trial (such as ``vae.t007``) to node."""

GATE_PLACEMENT: Final = "hera-specon.io/placement"
"""Scheduling gate that keeps a trial's pod from being scheduled until a controller has chosen its node."""

PARAMETER_CONTINUE: Final = "continue-sweep"
"""Workflow parameter: uid of the workflow whose trials go on in this one; empty where they start anew."""

INPUT_TRIAL: Final = "trial"
"""Input parameter of a trial template: number of the trial in its sweep."""
INPUT_PARAMS: Final = "params"
"""Input parameter of a trial template: all hyperparameters as a JSON object."""
INPUT_DELAY: Final = "delay"
"""Input parameter of a sweep's delay template: a duration such as ``50s``."""

SUFFIX_TRIAL: Final = "-trial"
"""Ends the name of the template of a sweep's trials."""
SUFFIX_ARRIVAL: Final = "-arrival"
"""Ends the name of the template that waits, then runs one trial."""
SUFFIX_DELAY: Final = "-delay"
"""Ends the name of the template that only waits."""

ANNOTATION_MOVE_TO: Final = "hera-specon.io/move-to"
"""On a trial's pod: the node its next attempt shall run on. The durable mark of a move."""
ANNOTATION_MOVE_ASKED_AT: Final = "hera-specon.io/move-asked-at"
"""On a trial's pod: when the move was asked for, in Unix seconds."""
ANNOTATION_PLACED_ON: Final = "hera-specon.io/placed-on"
"""On a trial's pod: the node that the controller chose for it when it opened the gate."""
ANNOTATION_MOVED_FROM: Final = "hera-specon.io/moved-from"
"""On a trial's pod: the node that the attempt before it left in a move."""
ANNOTATION_MOVES: Final = "hera-specon.io/moves"
"""On a trial's pod: how many moves the trial had completed before this pod ran."""
ANNOTATION_RESIZES: Final = "hera-specon.io/resizes"
"""On a trial's pod: how many resizes the trial had seen when this was last written."""
ANNOTATION_BASE_CPU: Final = "hera-specon.io/base-cpu"
"""On a trial's pod that was resized: the CPU request that it was created with, in cores."""
LABEL_STATE: Final = "hera-specon.io/state"
"""On a ConfigMap: name of the workflow whose controller's state it holds."""
MOVED_MESSAGE: Final = "hera-specon.io: moved"
"""Termination message of an attempt that was ended by force for a move: not the trial's own failure."""
