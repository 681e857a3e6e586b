"""The trials that a workflow has by its templates, begun or not."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controllers.core import labels
from controllers.core.model import TrialId
from controllers.core.ports import ComingTrial
from controllers.worlds.argo.api import Json
from controllers.worlds.argo.pods import Resources
from controllers.worlds.argo.untrusted import at, mappings, number, text

_MOST_TRIALS: Final = 20_000
_NOTHING: Final = Resources(0.0, 0.0)


def planned_trials(workflow: Json, sweeps: Iterable[str], requests: Mapping[str, Resources]) -> list[ComingTrial]:
    """Return the trials of ``sweeps`` with the delay that each begins with.

    The id of a trial that has no number ends in a dot.

    Args:
        workflow: The workflow.
        sweeps: Ids of its sweeps.
        requests: What the trials of each template request.
    """
    names = {sweep.rpartition(".")[2]: sweep for sweep in sweeps}
    return list(itertools.islice(_planned(workflow, names, requests), _MOST_TRIALS))


def _planned(workflow: Json, sweeps: Mapping[str, str], requests: Mapping[str, Resources]) -> Iterator[ComingTrial]:
    for template in mappings(workflow, "spec", "templates"):
        name = text(template, "name")
        steps = template.get("steps") if name in sweeps else None
        for group in steps if isinstance(steps, list) else ():
            for step in group if isinstance(group, list) else ():
                items = at(step, "withItems")
                for item in items if isinstance(items, list) else ():
                    trial = TrialId(f"{sweeps[name]}.{text(item, labels.INPUT_TRIAL, most=63)}")
                    delay = number(text(item, labels.INPUT_DELAY, most=32).removesuffix("s") or "0")
                    asked = requests.get(name + labels.SUFFIX_TRIAL, _NOTHING)
                    yield ComingTrial(trial, delay or 0.0, asked.cpu, asked.memory, asked.devices)


def holds_trials_back(workflow: Json) -> bool:
    """Whether trials of the workflow may begin later than the workflow itself."""
    places = (at(workflow, "spec"), *mappings(workflow, "spec", "templates"))
    return any(at(place, "parallelism") is not None or at(place, "suspend") is not None for place in places)
