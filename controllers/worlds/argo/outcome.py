"""What a trial came to, from Argo's record of its step."""

from controllers.core.model import Phase, Sample
from controllers.core.results import TrialResult
from controllers.worlds.argo.trials import TrialState


def trial_result(name: str, state: TrialState, sample: Sample | None, origin: float) -> TrialResult:
    """Return how a trial went.

    Args:
        name: its short id.
        state: the trial.
        sample: the newest report of its training, if there is one.
        origin: when the sweep began, in Unix seconds.
    """
    nodes = [attempt.node for attempt in state.step.attempts if attempt.node] if state.step is not None else []
    if not nodes and state.known.pod is not None and state.known.pod.node:
        nodes = [state.known.pod.node]
    ended = state.step.finished_at if state.step is not None else None
    return TrialResult(
        id=name,
        submitted_s=max(0.0, state.submitted_at - origin),
        completed_s=max(0.0, (state.submitted_at if ended is None else ended) - origin),
        node=nodes[-1] if nodes else "",
        moves=state.moves,
        attempts=state.attempt,
        final_metric=None if sample is None else sample.value,
        succeeded=state.phase is Phase.SUCCEEDED,
        resizes=state.known.resizes,
        first_node=nodes[0] if nodes else "",
        params=state.facts.hyperparameters(),
        deadline_s=state.facts.goals.deadline_s,
    )
