"""What is written on a workflow about a trial that is asked to leave. Pure."""

from collections.abc import Mapping

from controllers.core.annotations import check_fits, reason_that_fits
from controllers.worlds.argo.gang_planner import plan_of
from controllers.worlds.argo.pods import PodRecord
from controllers.worlds.argo.snapshot import CampaignSnapshot
from controllers.worlds.argo.trials import TrialState


def plan_notes(state: TrialState, pod: PodRecord, next_size: int) -> Mapping[str, str | None]:
    """Return the annotations of the workflow for a gang that is asked to leave; none for a trial of one worker."""
    if not pod.workers:
        return {}
    return plan_of(state, pod, next_size, leaves=True).annotations(state.definition)


def stop_notes(seen: CampaignSnapshot, state: TrialState, pod: PodRecord, why: str) -> Mapping[str, str | None]:
    """Return the annotations of the workflow for a trial that is stopped.

    Raises:
        AnnotationError: The workflow has no room for the mark.
    """
    workflow, mark = seen.workflow, state.definition.stop_mark
    trials = len(seen.states) + (0 if workflow is None else len(workflow.to_come))
    noted = {mark: reason_that_fits(why, mark, trials)}
    check_fits(noted, {} if workflow is None else workflow.annotations, "the mark of the stop")
    # One that left too often for nothing may leave once more, so that its step succeeds.
    freed = {} if state.idle is None else {state.definition.idle_mark: None}
    return {**plan_notes(state, pod, 1), **freed, **noted}
