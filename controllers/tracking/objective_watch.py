"""Notices trials that log everything but the metric that decides about them."""

from collections.abc import Collection, Iterator, Mapping

from controllers.core.model import TrialId

_WAIT_S = 60.0


class ObjectiveWatch:
    """Notices, within a minute of its first metrics, a trial that never logs its objective."""

    def __init__(self) -> None:
        self._since: dict[TrialId, float] = {}

    def complaints(
        self,
        now: float,
        objectives: Mapping[TrialId, str],
        logged: Mapping[TrialId, frozenset[str]],
        ended: Collection[TrialId],
    ) -> Mapping[TrialId, str]:
        """Look once, at ``now`` seconds; return for each such trial its objective, and what it does log."""
        found: dict[TrialId, str] = {}
        for trial, objective, ours in _without_objective(objectives, logged):
            since = self._since.setdefault(trial, now)
            if trial in ended or now - since > _WAIT_S:
                found[trial] = (
                    f"trial {trial} never logged its objective {objective!r} in {now - since:.0f} s of logging "
                    f"{', '.join(sorted(ours))}: name one of these in Sweep(objective=...), or log {objective!r}"
                )
        return found


def _without_objective(
    objectives: Mapping[TrialId, str], logged: Mapping[TrialId, frozenset[str]]
) -> Iterator[tuple[TrialId, str, frozenset[str]]]:
    """Yield the trials that log something, but not their objective, with the names of their own metrics."""
    for trial, names in logged.items():
        objective = objectives.get(trial)
        ours = frozenset(name for name in names if not name.startswith("specon."))
        if objective is not None and objective not in names and ours:
            yield trial, objective, ours
