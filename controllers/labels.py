"""Labels and annotations by which a sweep's trials are known in a workflow, a pod, and to every world."""

from typing import Final

PREFIX: Final = "hera-specon.io"

SWEEP: Final = f"{PREFIX}/sweep"
"""Label: name of the sweep that a trial belongs to."""
TRIAL: Final = f"{PREFIX}/trial"
"""Label: the trial within its sweep, such as ``t007``."""
OBJECTIVE: Final = f"{PREFIX}/objective"
"""Annotation: the metric that says how good the model is."""
DIRECTION: Final = f"{PREFIX}/direction"
"""Annotation: ``minimize`` or ``maximize``."""
POLICY: Final = f"{PREFIX}/policy"
"""Annotation: the policy its author chose, as ``controllers.policies.registry`` reads it."""
WORKERS: Final = f"{PREFIX}/workers"
"""Annotation: how many workers a trial has; one where absent."""
