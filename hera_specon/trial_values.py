"""The hyperparameters that the trials of a workflow will have, read out of its manifest. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from controllers.core import labels
from controllers.core.errors import SearchError
from controllers.search.spec import Options, read_search
from hera_specon.manifest import Manifest, sweep_of
from hera_specon.settings import input_name
from hera_specon.space import value_text

_NO_HYPERPARAMETERS: Final = frozenset(
    {labels.INPUT_TRIAL, labels.INPUT_PARAMS, labels.INPUT_DELAY}
    | {labels.INPUT_DEADLINE, labels.INPUT_TARGET, labels.INPUT_SECONDS_PER_STEP}
)

Inputs = Mapping[str, str]
"""The texts of one trial's hyperparameters, by the names of their inputs."""


def trial_values(manifest: Manifest, sweep: str) -> dict[str, Inputs]:
    """Return the hyperparameters of each trial of ``sweep`` by its number; none where a search finds them later."""
    templates = (manifest.get("spec") or {}).get("templates") or []
    starts: Mapping[str, Any] = next((template for template in templates if template.get("name") == sweep), {})
    inputs_of: dict[str, Inputs] = {}
    for step in (step for group in starts.get("steps") or [] for step in group):
        inputs_of |= dict(_trials(step))
    return inputs_of


def options(manifest: Manifest, trial: Manifest) -> dict[str, set[str]]:
    """Return the texts that each hyperparameter of the template ``trial`` may have, as far as they are known."""
    texts_of: dict[str, set[str]] = {}
    for values in trial_values(manifest, sweep_of(trial)).values():
        for name, text in values.items():
            texts_of.setdefault(name, set()).add(text)
    written = (trial["metadata"].get("annotations") or {}).get(labels.ANNOTATION_SEARCH)
    if written is None:
        return texts_of
    try:
        space = read_search(str(written)).space
    except SearchError:
        return texts_of
    texts = {dimension.name: dimension.domain.options for dimension in space if isinstance(dimension.domain, Options)}
    return {input_name(name): {value_text(value) for value in values} for name, values in texts.items()}


def _trials(step: Mapping[str, Any]) -> Iterator[tuple[str, Inputs]]:
    """Yield the number and the hyperparameters of each trial that ``step`` starts."""
    given = (step.get("arguments") or {}).get("parameters") or []
    keys = {
        parameter["name"]: str(parameter.get("value", "")).removeprefix("{{item.").removesuffix("}}")
        for parameter in given
    }
    for item in step.get("withItems") or []:
        if isinstance(item, dict) and keys.get(labels.INPUT_TRIAL) in item:
            texts = {name: str(item[key]) for name, key in keys.items() if key in item}
            yield (
                texts[labels.INPUT_TRIAL],
                {name: text for name, text in texts.items() if name not in _NO_HYPERPARAMETERS},
            )
