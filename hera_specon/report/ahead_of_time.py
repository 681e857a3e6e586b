"""Imports what pages need while the last trials of a sweep run: its user need not wait for that at the end.

That takes some seconds of a core. Earlier, trials would lack them; by then, cores are idle.
"""

import importlib
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from controllers.core.actions import Assessment
from controllers.core.model import Snapshot, TrialId

_SLOW: Final = ("hera_specon.report.page", "scipy.stats", "optuna.importance")


class PageImports:
    """An observer of a sweep.

    Args:
        cores: of this machine.
    """

    def __init__(self, cores: int | None = None) -> None:
        self._cores = cores or os.cpu_count() or 1
        self._thread: threading.Thread | None = None

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Begin, once fewer trials are left than there are cores; return at once."""
        del assessments, reasons
        if self._thread is None and len(snapshot.unended) < self._cores:
            self._thread = threading.Thread(target=self._run, name="page-imports", daemon=True)
            self._thread.start()

    @staticmethod
    def _run() -> None:
        for name in _SLOW:
            with suppress(ImportError):  # the page says what it lacks
                importlib.import_module(name)
