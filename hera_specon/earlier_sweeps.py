"""What an author says of the sweeps that a new one learns from: ``Sweep(after=...)``."""

import copy
from collections.abc import Sequence
from typing import Any

from controllers.core.after_sweeps import AfterError, after_names, after_notes
from hera_specon.errors import SweepError
from hera_specon.manifest import Manifest, trial_templates


def sweep_after(after: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the earlier sweeps that ``after=`` of a sweep names.

    Raises:
        SweepError: It names none, or too many.
    """
    try:
        return after_names(after)
    except AfterError as error:
        raise SweepError(str(error)) from error


def with_after(manifest: Manifest, names: Sequence[str]) -> dict[str, Any]:
    """Return ``manifest`` with other earlier sweeps for its sweeps to learn from."""
    document: dict[str, Any] = copy.deepcopy(dict(manifest))
    for template in trial_templates(document):
        template["metadata"].setdefault("annotations", {}).update(after_notes(names))
    return document
