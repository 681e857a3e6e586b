"""Colours of the report, told apart by people who see few of them and on light and dark pages."""

from collections.abc import Iterable

CATEGORIES = {"progressing": "#2f7ed8", "watching": "#e5a11f", "converged": "#9a6fb0"}
"""Bars of the Gantt chart by category."""
UNASSESSED = "#8796a5"
"""A trial that runs without a policy having judged it."""
MOVING = "#2aa198"
"""A trial between two attempts."""

POLICIES = ("#8796a5", "#2f7ed8", "#e5731f", "#2aa198", "#b0538f", "#7a6ad8")
"""The baseline is grey, what is compared with it stands out."""

TRIALS = (
    "#2f7ed8", "#e5731f", "#2aa198", "#b0538f", "#c9a227", "#7a6ad8", "#5b9e4d", "#d6616b", "#4fb3d9", "#8c6d46",
    "#5d6fb3", "#d98bb9",
)  # fmt: skip
"""A trial keeps its colour over all charts; after twelve they begin again."""


def category_colour(phase: str, category: str | None) -> str:
    """Return the colour of a bar."""
    if phase == "moving":
        return MOVING
    return CATEGORIES.get(category or "", UNASSESSED)


def category_label(phase: str, category: str | None) -> str:
    """Return what a bar's colour means."""
    return "moving" if phase == "moving" else category or "not judged"


def trial_colours(trials: Iterable[str]) -> dict[str, str]:
    """Return a colour for each trial, the same for the same set of trials."""
    return {trial: TRIALS[i % len(TRIALS)] for i, trial in enumerate(sorted(set(trials), key=natural))}


def natural(name: str) -> tuple[int, str]:
    """Return a key that sorts trial-2 before trial-10."""
    return len(name), name
