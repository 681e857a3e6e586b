"""What a trial of a run on this machine has logged: by its journal, which is the truth, and by MLflow."""

from collections.abc import Set as AbstractSet
from pathlib import Path

from controllers.core.model import TrialId
from controllers.core.results import TrialResult
from controllers.tracking.mlflow_source import MlflowSource
from controllers.worlds.local.jobs import file_name
from mlflow_hooks.bounds import MOST_OF_LOG
from mlflow_hooks.foreign_files import both_ends
from mlflow_hooks.journal import logged_keys
from mlflow_hooks.printed.lines import lines_of
from mlflow_hooks.printed.named import kept_name, printed_metrics


class NamesLogged:
    """Tells the names of all metrics of a trial, for ``with_what_they_logged``.

    Args:
        state_root: where trials keep their journals.
        uid: what the ids of the trials begin with.
        source: of their metrics. It was read after the last points were sent, if MLflow still answered.
    """

    def __init__(self, state_root: Path, uid: str, source: MlflowSource) -> None:
        self._state_root = state_root
        self._uid = uid
        self._source = source

    def __call__(self, result: TrialResult) -> AbstractSet[str] | None:
        """Return the names for a trial; None where nobody can tell."""
        trial = TrialId(f"{self._uid}.{result.id}")
        known = self._source.logged.get(trial, frozenset())
        if known >= {result.objective, *result.aims.metrics}:
            return known  # a journal may be long, and tells nothing that matters here
        try:
            journalled = logged_keys(self._state_root / trial)
        except OSError:
            return None
        if journalled is None:
            # A script without hooks logs into MLflow alone, or prints.
            return None if self._source.away else known or self._printed(trial)
        return known | journalled

    def _printed(self, trial: TrialId) -> frozenset[str]:
        log = self._state_root.parent / "logs" / f"{file_name(trial)}.log"
        try:
            lines = lines_of(both_ends(log, MOST_OF_LOG))
        except OSError:
            return frozenset()
        return frozenset(kept_name(name) for name, _ in printed_metrics(*lines))
