"""What two orders of the same sweep differ in, in words that its author knows."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from controllers.core import labels
from controllers.local_run.order import Order
from controllers.worlds.local.read_programs import local_command
from controllers.worlds.local.workflow import PlannedTrial, PodStep
from mlflow_hooks import contract
from mlflow_hooks.foreign_json import parsed

_MOST_LINES: Final = 12
_MOST_VALUES: Final = 6
_MOST_TEXT: Final = 60
_CONTEXT: Final = 12
_ITEMS: Final = "withItems"
"""Where a manifest lists the hyperparameters of its trials: these are told by their names."""
_OPTIONS: Final = {"nodes": "--nodes", "cpus_per_node": "--cpus-per-node", "seed": "--seed", "parameters": "-p"}
_MISSING: Final = object()
_OBJECTIVE_ENV: Final = (contract.ENV_OBJECTIVE, contract.ENV_DIRECTION)
_OBJECTIVE_NOTES: Final = (
    *(labels.ANNOTATION_OBJECTIVE, labels.ANNOTATION_DIRECTION),
    *(labels.ANNOTATION_FURTHER_OBJECTIVES, labels.ANNOTATION_CONSTRAINTS),
)


def changed_options(before: Order, now: Order) -> list[str]:
    """Return a line for each difference in what is given beside the file."""
    old, new = before.identity(), now.identity()
    told = [f"--policy: {_values(old['policies'])} -> {_values(new['policies'])}"]
    told = told if old["policies"] != new["policies"] else []
    return told + [
        f"{option}: {old[name]} -> {new[name]}" for name, option in _OPTIONS.items() if old[name] != new[name]
    ]


def changes(before: Order, now: Order) -> list[str]:
    """Return a line for each difference between two orders, at most a dozen."""
    lines = [*_of_trials(_planned(before), _planned(now)), *_of_manifests(before.workflow, now.workflow)]
    lines += changed_options(before, now)
    more = len(lines) - _MOST_LINES
    return lines if more <= 0 else [*lines[:_MOST_LINES], f"and {more} more"]


def trial_that_differs(before: Order, now: Order) -> str | None:
    """Return the first trial of ``before`` that is trained in another way under ``now``, or is missing there."""
    old, new = ({trial.step.env[contract.ENV_TRIAL_ID]: trial.step for trial in _planned(of)} for of in (before, now))
    different = (name for name, step in old.items() if name not in new or not _same_training(step, new[name]))
    return next((name.partition(".")[2] for name in different), None)


def objective_alone_differs(before: Order, now: Order) -> bool:
    """Return whether two orders differ in nothing but what their trials are judged by."""
    if changed_options(before, now):
        return False
    old, new = ([_but_for_its_objective(trial) for trial in _planned(of)] for of in (before, now))
    return old == new


def _but_for_its_objective(trial: PlannedTrial) -> PlannedTrial:
    env = {name: value for name, value in trial.step.env.items() if name not in _OBJECTIVE_ENV}
    notes = {name: value for name, value in trial.step.annotations.items() if name not in _OBJECTIVE_NOTES}
    return replace(trial, step=replace(trial.step, env=env, annotations=notes))


def _planned(order: Order) -> Sequence[PlannedTrial]:
    return order.program("check").trials()


def _same_training(old: PodStep, new: PodStep) -> bool:
    if (old.environment, old.source) != (new.environment, new.source):
        return False
    # A script that chooses words for each value also has those of other trials.
    return old.command + old.args == new.command + new.args or _words(old) == _words(new)


def _words(step: PodStep) -> tuple[str, ...]:
    return local_command(step.command + step.args, {**os.environ, **step.environment})


def _of_trials(before: Sequence[PlannedTrial], now: Sequence[PlannedTrial]) -> Iterator[str]:
    old, new = ([_params(trial) for trial in of] for of in (before, now))
    changed = False
    for name in dict.fromkeys(name for params in (*old, *new) for name in params):
        was, now_is = ([params[name] for params in of if name in params] for of in (old, new))
        if set(map(repr, was)) != set(map(repr, now_is)):
            changed = True
            yield f"hyperparameter {name}: {_values(was)} -> {_values(now_is)}"
    if len(old) != len(new):
        yield f"trials: {len(old)} -> {len(new)}"
    elif old != new and not changed:
        yield "the trials have the same values in another order"


def _params(trial: PlannedTrial) -> dict[str, Any]:
    try:
        params = parsed(trial.step.environment.get(contract.ENV_PARAMS) or "{}")
    except ValueError:
        return {}
    return params if isinstance(params, dict) else {}


def _values(values: Sequence[Any]) -> str:
    """Return the values in order, where they are few; else from where to where they go."""
    different = list(dict.fromkeys(map(_text, values)))
    if not different:
        return "none"
    if len(different) <= _MOST_VALUES:
        return ", ".join(different)
    if all(isinstance(value, int | float) for value in values):
        return f"{len(different)} values from {min(values):.4g} to {max(values):.4g}"
    return f"{', '.join(different[:_MOST_VALUES])} and {len(different) - _MOST_VALUES} more"


def _of_manifests(before: Any, now: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    if before == now or path.endswith(f".{_ITEMS}"):
        return
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        pairs = [(name, before.get(name, _MISSING), now.get(name, _MISSING)) for name in {**before, **now}]
    elif isinstance(before, list) and isinstance(now, list):
        old, new = _named(before), _named(now)
        pairs = [(name, old.get(name, _MISSING), new.get(name, _MISSING)) for name in {**old, **new}]
    else:
        yield f"{path.removeprefix('.spec.').lstrip('.')}: {_apart(_text(before), _text(now))}"
        return
    for name, was, now_is in pairs:
        yield from _of_manifests(was, now_is, f"{path}.{name}")


def _named(items: Sequence[Any]) -> dict[str, Any]:
    """Return the items of a list by their names, else by their places."""
    names = [
        str(item["name"]) if isinstance(item, Mapping) and "name" in item else str(i) for i, item in enumerate(items)
    ]
    return dict(zip(names, items, strict=True))


def _apart(before: str, now: str) -> str:
    """Return two texts without most of what both begin with."""
    alike = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    cut = alike - _CONTEXT if alike > _MOST_TEXT // 2 else 0
    was, now_is = (f"{'...' if cut else ''}{text[cut : cut + _MOST_TEXT]}" for text in (before, now))
    return f"{was} -> {now_is}"


def _text(value: object) -> str:
    return "none" if value is _MISSING else value if isinstance(value, str) else json.dumps(value, default=str)
