"""The Argo expressions in a sweep's manifest: one text for who writes them and for whoever reads the manifest."""

from typing import Final

from controllers.core.labels import ANNOTATION_ADOPTED, GATE_PLACEMENT, MOVED_MESSAGE, PARAMETER_CONTINUE
from mlflow_hooks.contract import EXIT_MIGRATE

EXIT_TERMINATED: Final = 128 + 15
"""Exit code of a program that SIGTERM ended: asked to leave before the hooks listened, or after they had ended."""
LEFT: Final = frozenset({EXIT_MIGRATE, EXIT_TERMINATED})
"""Exit codes of an attempt that was asked to leave; none of them says anything about the trial itself."""
_EXITS: Final = " || ".join(f"lastRetry.exitCode == '{code}'" for code in sorted(LEFT))
MOVED: Final = f"({_EXITS} || lastRetry.message contains '{MOVED_MESSAGE}')"
"""Whether the attempt before left to go on elsewhere: by itself, or by force because it was deaf to the request."""
# Argo splits the names of annotations at every dot.
_DOMAIN, _, _NAME = ANNOTATION_ADOPTED.partition(".")
_ADOPTED: Final = f"workflow.annotations['{_DOMAIN}']?.['{_NAME}'] == workflow.uid"
_GATES: Final = f"[{{name: '{GATE_PLACEMENT}'}}]"

GATE_MOVED: Final = f"{{{{={MOVED} && {_ADOPTED} ? {_GATES} : []}}}}"
"""Scheduling gates of a trial's pod: ours where it follows a move that a controller may have asked for, else none.

A drained node makes a trial exit as a move does; without a controller its next pod must not wait for one.
"""
GATE_FIRST: Final = f"{{{{=retries == '0' || {MOVED} ? {_GATES} : []}}}}"
"""Scheduling gates where a controller is to place first attempts too."""

SWEEP_UID: Final = f"{{{{=sprig.coalesce(workflow.parameters['{PARAMETER_CONTINUE}'] ?? '', workflow.uid)}}}}"
"""What the ids of sweep and trials begin with: the workflow's uid, or that of the workflow which it continues."""


def inside(tag: str) -> str:
    """Return ``tag`` without its braces."""
    return tag.removeprefix("{{").removesuffix("}}")
