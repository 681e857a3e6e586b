"""Warnings of goals that a sweep sets and that its policy does not go by."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controllers.core import labels
from controllers.core.policy import Policy
from controllers.policies.registry import POLICIES, parse_policy
from hera_specon.goals import goals_served, goals_set
from hera_specon.submission.trial_templates import Manifest, trial_templates


def run_warnings(manifest: Manifest, policies: Sequence[Policy[Any]]) -> list[str]:
    """Return a warning for each goal in ``manifest`` that none of ``policies`` goes by, whatever the manifest names."""
    found = [warning for template in trial_templates(manifest) for warning in _warnings(_notes(template), policies)]
    return list(dict.fromkeys(found))


def submission_warnings(manifest: Manifest) -> list[str]:
    """Return a warning for each goal in ``manifest`` that the policy named beside it does not go by.

    Raises:
        PolicyError: A template names no known policy.
    """
    found: list[str] = []
    for template in trial_templates(manifest):
        notes = _notes(template)
        named = notes.get(labels.ANNOTATION_POLICY)
        found += _warnings(notes, [parse_policy(str(named))] if named else [])
    return list(dict.fromkeys(found))


def _notes(template: Manifest) -> Mapping[str, Any]:
    return (template.get("metadata") or {}).get("annotations") or {}


def _warnings(notes: Mapping[str, Any], policies: Sequence[Policy[Any]]) -> Iterator[str]:
    served = {goal for policy in policies for _, goal in goals_served(policy)}
    for goal in goals_set(notes):
        if goal not in served:
            by = ", ".join(name for name, policy in sorted(POLICIES.items()) if policy.goal == goal)
            yield f"the sweep sets {goal}=, but {_who_lacks_it(policies)}; policies that go by it: {by}"


def _who_lacks_it(policies: Sequence[Policy[Any]]) -> str:
    if not policies:
        return "names no policy, and whether the controller's own goes by it is not known here"
    names = ", ".join(dict.fromkeys(policy.name for policy in policies))
    return f"policy {names} does not go by it" if len(policies) == 1 else f"none of the policies {names} goes by it"
