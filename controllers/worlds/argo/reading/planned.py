"""The trials that a workflow has by its templates, begun or not."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controllers.core import labels
from controllers.core.model import TrialId
from controllers.core.ports import ComingTrial
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, mappings, number, text
from controllers.worlds.argo.reading.pods import NO_RESOURCES, Resources

MOST_TRIALS: Final = 20_000
"""Trials of a workflow that are read."""
_OF_ITEM: Final = re.compile(r"\{\{item\.([^{}]{1,63})\}\}")


def planned_trials(workflow: Json, sweeps: Iterable[str], requests: Mapping[str, Resources]) -> list[ComingTrial]:
    """Return the trials of ``sweeps`` with the delay that each begins with.

    The id of a trial that has no number ends in a dot.

    Args:
        workflow: The workflow.
        sweeps: Ids of its sweeps.
        requests: What the trials of each template request.
    """
    names = {sweep.rpartition(".")[2]: sweep for sweep in sweeps}
    return list(itertools.islice(_planned(workflow, names, requests), MOST_TRIALS))


def _planned(workflow: Json, sweeps: Mapping[str, str], requests: Mapping[str, Resources]) -> Iterator[ComingTrial]:
    for template in mappings(workflow, "spec", "templates"):
        name = text(template, "name")
        steps = template.get("steps") if name in sweeps else None
        for group in steps if isinstance(steps, list) else ():
            for step in group if isinstance(group, list) else ():
                items, keys = at(step, "withItems"), item_keys(step)
                for item in items if isinstance(items, list) else ():
                    trial = TrialId(f"{sweeps[name]}.{text(item, keys[labels.INPUT_TRIAL], most=63)}")
                    delay = number(text(item, keys[labels.INPUT_DELAY], most=32).removesuffix("s") or "0")
                    asked = requests.get(name + labels.SUFFIX_TRIAL, NO_RESOURCES)
                    yield ComingTrial(trial, delay or 0.0, asked.cpu, asked.memory, asked.devices)


def item_keys(step: object) -> dict[str, str]:
    """Return the key that holds each input of a trial in the items of a step: its name, in large sweeps a number."""
    given = mappings(step, "arguments", "parameters")
    tags = ((text(parameter, "name"), _OF_ITEM.fullmatch(text(parameter, "value"))) for parameter in given)
    ours = {name: name for name in (labels.INPUT_TRIAL, labels.INPUT_DELAY)}
    return ours | {name: tag[1] for name, tag in tags if tag is not None}


def holds_trials_back(workflow: Json) -> bool:
    """Whether trials of the workflow may begin later than the workflow itself."""
    places = (at(workflow, "spec"), *mappings(workflow, "spec", "templates"))
    return any(at(place, "parallelism") is not None or at(place, "suspend") is not None for place in places)
