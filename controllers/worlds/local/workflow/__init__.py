"""The workflow that Hera built, as something this machine can run step by step. Pure: no I/O, no clock."""

from controllers.worlds.local.workflow.expression import ExpressionError
from controllers.worlds.local.workflow.findings import UnsupportedWorkflowError, WorkflowError
from controllers.worlds.local.workflow.program import Program, read_workflow
from controllers.worlds.local.workflow.steps import (
    Delay,
    Expansion,
    PlannedTrial,
    PodStep,
    RetryRule,
    StepOutcome,
    StepStatus,
)

__all__ = [
    "Delay",
    "Expansion",
    "ExpressionError",
    "PlannedTrial",
    "PodStep",
    "Program",
    "RetryRule",
    "StepOutcome",
    "StepStatus",
    "UnsupportedWorkflowError",
    "WorkflowError",
    "read_workflow",
]
