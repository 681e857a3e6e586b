"""What the trials of a sweep shall reach: deadline, target, time per step; and whether its policy uses it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from controllers.core import labels
from controllers.core.policy import Policy
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.registry import POLICIES, parse_policy
from controllers.policies.wrappers.wrapper import parts
from controllers.worlds.local.workflow.values import ManifestValueError, parse_duration
from hera_specon.errors import SweepError
from hera_specon.manifest import Manifest, trial_templates
from hera_specon.settings import PolicyChoice, is_finite, policy_text
from hera_specon.space import Distribution

Goal = float | str | Distribution | Sequence[float | str]
"""One value for all trials, one for each in their order, or a distribution that each draws its own from."""


@dataclass(frozen=True, slots=True)
class SweepGoals:
    """Goals as texts: ``shared`` by annotation; ``own`` by annotation, an input and its value for each trial."""

    shared: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, tuple[str, ...]]:
        """Values by input of the trial template, one for each trial."""
        return dict(self.own.values())

    def annotations(self, placeholder: Callable[[str], str]) -> dict[str, str]:
        """Return a trial's annotations; ``placeholder`` gives what Argo replaces by an input."""
        return {**self.shared, **{note: placeholder(name) for note, (name, _) in self.own.items()}}


@dataclass(frozen=True, slots=True)
class _Kind:
    """One of the goals: its setting, annotation and input, and how a value of it is read."""

    setting: str
    annotation: str
    input: str
    read: Callable[[str, object], float]


def sweep_goals(goals: Mapping[str, Goal | None], trials: int, seed: int) -> SweepGoals:
    """Return the goals of ``trials`` trials.

    Args:
        goals: by setting: ``deadline``, ``target``, ``seconds_per_step``; None where nothing is asked.
        trials: how many there are.
        seed: draws the same values again.

    Raises:
        SweepError: a value is none that could be reached, or there is not one for each trial.
    """
    shared: dict[str, str] = {}
    own: dict[str, tuple[str, tuple[str, ...]]] = {}
    for kind in _KINDS:
        goal = goals.get(kind.setting)
        if goal is None:
            continue
        texts = tuple(f"{kind.read(kind.setting, value):.10g}" for value in _values(kind.setting, goal, trials, seed))
        if isinstance(goal, Distribution | list | tuple):
            own[kind.annotation] = (kind.input, texts)
        else:
            shared[kind.annotation] = texts[0]
    return SweepGoals(shared, own)


def check_served(policy: PolicyChoice, goals: Mapping[str, Goal | None]) -> None:
    """Check that a sweep sets the goals that its policy needs.

    Raises:
        SweepError: It lacks one.
    """
    for name, goal in goals_served(parse_policy(policy_text(policy))):
        if goals.get(goal) is None:
            problem = f"policy {name!r} needs {goal}=, which the sweep does not set"
            raise SweepError(problem)


def goals_served(policy: Policy[Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each part of ``policy`` that needs a goal, with the setting that gives it."""
    for part in parts(policy):
        if isinstance(part, PolicySettings) and part.goal:
            yield part.name, part.goal


def goals_set(notes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings of a sweep that are among a trial's annotations ``notes``."""
    return (kind.setting for kind in _KINDS if kind.annotation in notes)


def _values(setting: str, goal: Goal, trials: int, seed: int) -> Sequence[object]:
    if isinstance(goal, Distribution):
        chance = Random(f"{seed}:{setting}=")  # noqa: S311 - repeatable, guards no secret
        return [goal.draw(chance) for _ in range(trials)]
    if not isinstance(goal, list | tuple):
        return [goal]
    if len(goal) != trials:
        problem = f"{setting}= gives {len(goal)} values for {trials} trials"
        raise SweepError(problem)
    return goal


def _duration(setting: str, value: object) -> float:
    """Read seconds above 0, as a number or such as ``"90m"``."""
    problem = f"{setting}= is a time above 0 such as 5400 or '90m', not {value!r}"
    try:
        seconds = parse_duration(value) if isinstance(value, str) else value
    except ManifestValueError as error:
        raise SweepError(problem) from error
    if not is_finite(seconds) or seconds <= 0:
        raise SweepError(problem)
    return seconds


def _target(setting: str, value: object) -> float:
    if not is_finite(value):
        problem = f"{setting}= is a finite value of the objective, not {value!r}"
        raise SweepError(problem)
    return value


_KINDS: Final = (
    _Kind("deadline", labels.ANNOTATION_DEADLINE, labels.INPUT_DEADLINE, _duration),
    _Kind("target", labels.ANNOTATION_TARGET, labels.INPUT_TARGET, _target),
    _Kind("seconds_per_step", labels.ANNOTATION_SECONDS_PER_STEP, labels.INPUT_SECONDS_PER_STEP, _duration),
)


def run_warnings(manifest: Manifest, policies: Sequence[Policy[Any]]) -> list[str]:
    """Return a warning for each goal in ``manifest`` that none of ``policies`` uses; the policy it names is ignored."""
    warnings = [warning for template in trial_templates(manifest) for warning in _warnings(_notes(template), policies)]
    return list(dict.fromkeys(warnings))


def submission_warnings(manifest: Manifest) -> list[str]:
    """Return a warning for each goal in ``manifest`` that the policy of its template does not use.

    Raises:
        PolicyError: A template names no known policy.
    """
    warnings: list[str] = []
    for template in trial_templates(manifest):
        notes = _notes(template)
        named = notes.get(labels.ANNOTATION_POLICY)
        warnings += _warnings(notes, [parse_policy(str(named))] if named else [])
    return list(dict.fromkeys(warnings))


def named_policies(manifest: Manifest) -> list[str]:
    """Return the policies that the sweeps of ``manifest`` name, as spec strings, each once."""
    named = (_notes(template).get(labels.ANNOTATION_POLICY) for template in trial_templates(manifest))
    return list(dict.fromkeys(str(policy) for policy in named if policy))


def _notes(template: Manifest) -> Mapping[str, Any]:
    return (template.get("metadata") or {}).get("annotations") or {}


def _warnings(notes: Mapping[str, Any], policies: Sequence[Policy[Any]]) -> Iterator[str]:
    served = {goal for policy in policies for _, goal in goals_served(policy)}
    names = ", ".join(dict.fromkeys(policy.name for policy in policies))
    if not policies:
        lack = "it names no policy, and the controller's own may not use it"
    elif len(policies) == 1:
        lack = f"policy {names} does not use it"
    else:
        lack = f"none of the policies {names} uses it"
    for goal in goals_set(notes):
        if goal not in served:
            users = ", ".join(name for name, policy in sorted(POLICIES.items()) if policy.goal == goal)
            yield f"the sweep sets {goal}=, but {lack}; policies that use it: {users}"
